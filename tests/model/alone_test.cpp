// A pass through a model gives a sequence the same bits, whichever sequences
// run beside it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lipscope/core/gemm.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/estimate.h"
#include "tests/model/folders.h"
#include "tests/support/shared_files.h"

namespace lipscope {
namespace alone_test {

std::vector<Index> some_ids(Index count, Index vocabulary) {
  std::vector<Index> ids;
  for (Index i = 0; i < count; ++i)
    ids.push_back((7 * i * i + 3 * i + 1) % vocabulary);
  return ids;
}

// the states of three sequences, together and one by one
template <class Real>
void expect_each_as_if_alone(const Model& model, Index n) {
  const std::vector<Index> ids = some_ids(3 * n, model.config.vocabulary);
  const HiddenStates<Real> together =
      ForwardPass<Real>(model, {.sequences = 3})(ids);
  const ForwardPass<Real> pass(model, {});
  for (Index s = 0; s < 3; ++s) {
    const HiddenStates<Real> alone =
        pass({ids.begin() + s * n, ids.begin() + (s + 1) * n});
    const auto same = [&](const MatrixOf<Real>& all,
                          const MatrixOf<Real>& one) {
      return one == all.middleRows(s * n, n);
    };
    for (std::size_t l = 0; l < alone.layer.size(); ++l) {
      EXPECT_TRUE(same(together.layer[l], alone.layer[l]))
          << "input of layer " << l << ", sequence " << s << ", n = " << n;
      EXPECT_TRUE(same(together.attention[l], alone.attention[l]))
          << "attention of layer " << l << ", sequence " << s << ", n = " << n;
    }
    EXPECT_TRUE(same(together.last, alone.last)) << "sequence " << s;
    if (model.config.architecture != Architecture::bert) {
      EXPECT_TRUE(same(logits(model, together.last), logits(model, alone.last)))
          << "logits, sequence " << s;
    }
  }
}

class StackedPass
    : public testing::TestWithParam<std::tuple<Architecture, bool>> {};

TEST_P(StackedPass, TreatsASequenceAsIfItWereAlone) {
  const auto [architecture, tiles] = GetParam();
  std::optional<WithoutTiles> without;
  if (!tiles) without.emplace();
  const ModelConfig config = test::small_config(architecture);
  const test::TemporaryFolder folder;
  test::write_model(folder.path(), config, test::random_tensors(config, 5));
  const Model model = load_model(folder.path());
  for (const Index n : {1, 2, 3, 5}) {
    expect_each_as_if_alone<float>(model, n);
    expect_each_as_if_alone<double>(model, n);
  }

  // and so do all maps of a model
  const Index n = 3;
  const std::vector<Index> ids = some_ids(3 * n, config.vocabulary);
  const HiddenStates<double> states =
      ForwardPass<double>(model, {.sequences = 3})(ids);
  for (const MapName name : {MapName::residual, MapName::block, MapName::model})
    for (const Index limit : {0, 512}) {
      const bool whole = name == MapName::model;
      const auto measured = [&](const Matrix& x, Index sequences) {
        const ModelMapOptions how{.sequences = sequences};
        const auto make = [&]<class Real>(Real) {
          return whole ? model_map<Real>(model, how)
                       : layer_map<Real>(load_layer(model, 1, name), name, how);
        };
        return measure_norms(*make(0.0f), *make(0.0), x,
                             {.tolerance = 1e-4,
                              .enclose = 1.5,
                              .dense_limit = limit,
                              .sequences = sequences});
      };
      const Matrix& x = states.layer[whole ? 0 : 1];
      const std::vector<Measurement> together = measured(x, 3);
      for (Index s = 0; s < 3; ++s) {
        const Measurement alone = measured(x.middleRows(s * n, n), 1)[0];
        EXPECT_EQ(together[s].lower, alone.lower) << name_of(name);
        EXPECT_EQ(together[s].upper_whp, alone.upper_whp) << name_of(name);
        EXPECT_EQ(together[s].steps, alone.steps) << name_of(name);
        EXPECT_TRUE(together[s].direction == alone.direction) << name_of(name);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Small, StackedPass,
                         testing::Combine(testing::Values(Architecture::gpt2,
                                                          Architecture::bert,
                                                          Architecture::llama),
                                          testing::Bool()));

TEST(StackedPassOfMiniLM, TreatsASequenceAsIfItWereAlone) {
  const std::filesystem::path folder =
      test::shared_folder().value_or("absent") / "models/minilm-l6-v2-fp16";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no " << folder.string()
                 << "; LIPSCOPE_MODELS can name the folder of the models";
  const Model model = load_model(folder);
  for (const Index n : {2, 16, 19}) expect_each_as_if_alone<float>(model, n);
  expect_each_as_if_alone<double>(model, 5);
}

}  // namespace alone_test
}  // namespace lipscope
