#include "lipscope/audit/maps.h"

#include <gtest/gtest.h>

#include "lipscope/audit/measure.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "tests/model/folders.h"

namespace lipscope::audit {
namespace maps_test {

using test::TemporaryFolder;

// A folder with the attention of two layers alone, whose configuration speaks
// of so many layers with MLPs so wide.
ModelConfig write_attention(const TemporaryFolder& folder, Index layers,
                            Index mlp_width) {
  ModelConfig config = test::small_config(Architecture::gpt2);
  test::Tensors tensors = test::random_tensors(config, 1);
  std::erase_if(tensors, [](const auto& named) {
    return named.first.find(".attn.") == std::string::npos;
  });
  config.layers = layers;
  config.mlp_width = mlp_width;
  test::write_model(folder.path(), config, tensors);
  return config;
}

MeasureRequest every_head(const TemporaryFolder& folder) {
  write_npy(folder / "x.npy", gaussian(5, 8, Rng(2)));
  MeasureRequest request;
  request.source.model = folder.path();
  request.source.input = folder / "x.npy";
  request.selection.layers = "0,1";
  request.selection.heads = "each";
  request.certificate = "all";
  request.solver.threads = 2;
  return request;
}

std::vector<nlohmann::ordered_json> numbers(const TemporaryFolder& folder) {
  Records records;
  measure(every_head(folder), records);
  std::vector<nlohmann::ordered_json> found;
  for (const nlohmann::ordered_json& r : records.rows())
    found.push_back({r["layer"], r["head"], r["lower"], r["upper"],
                     r["details"]["certificates"]});
  return found;
}

// its layers are not kept in memory, and those of one layer together are
TEST(Maps, OfAModelTooLargeToKeepGiveTheSameNumbers) {
  const TemporaryFolder small, large;
  write_attention(small, 2, 12);
  write_attention(large, 8, 1 << 20);
  const auto keeps = [](const TemporaryFolder& folder) {
    const MeasureRequest request = every_head(folder);
    const Subject subject = load_subject(request.source);
    const Selection selection =
        select(request.selection, request.source, subject);
    return Maps(subject, selection, 1, 0).keeps_layers();
  };
  ASSERT_TRUE(keeps(small));
  ASSERT_FALSE(keeps(large));
  const auto expected = numbers(small);
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_EQ(numbers(large), expected);
}

TEST(Maps, ReadTheWeightsOfALayerOnce) {
  const TemporaryFolder folder;
  write_attention(folder, 2, 12);
  const MeasureRequest request = every_head(folder);
  const Subject subject = load_subject(request.source);
  const Selection selection =
      select(request.selection, request.source, subject);
  Maps maps(subject, selection, 1, 0);
  const LayerWeights* first = &maps.weights(0);
  maps.prepare({0, 1}, 1, true);
  maps.prepare_certificates({0, 1});
  maps.weights(1);
  EXPECT_EQ(&maps.weights(0), first);
  EXPECT_TRUE(maps.pair({0, 1}, 1).witness);
  EXPECT_TRUE(maps.pair({0, 1}, 1).search);
  const Map<double>* made = maps.pair({0, 1}, 1).witness.get();
  maps.prepare({0, 1}, 1, true);
  EXPECT_EQ(maps.pair({0, 1}, 1).witness.get(), made);
}

}  // namespace maps_test
}  // namespace lipscope::audit
