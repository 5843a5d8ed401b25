// What tokens see, as a user says it: --mask, --window, --padding, and the
// masks of a model's own layers.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "lipscope/attention/dense.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/dense.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace masks_test {

using nlohmann::json;
using test::expect_refusal;
using test::json_lines;
using test::Outcome;

std::vector<json> measured(const std::string& options) {
  const Outcome o = test::lipscope("measure --json " + options);
  EXPECT_EQ(o.code, 0) << o.err;
  std::vector<json> records;
  for (const json& r : json_lines(o.out))
    if (r["command"] == "measure") records.push_back(r);
  return records;
}

TEST(Masks, OfALoneLayerAreItsMaskWindowAndPadding) {
  const test::Folder folder;
  const test::LayerCase c{.heads = 3};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  write_safetensors(folder / "w.safetensors", {{"q", weights.query},
                                               {"k", weights.key},
                                               {"v", weights.value},
                                               {"o", weights.output},
                                               {"x", x}});
  Mask window = Mask::none, both = Mask::causal, padded = Mask::none;
  window.window = 2;
  both.window = 3;
  both.padding_after = 1;
  padded.padding_before = 1;
  padded.padding_after = 2;
  const std::vector<std::pair<std::string, Mask>> cases = {
      {"--window 2", window},
      {"--mask causal --window 3 --padding 0:1", both},
      {"--padding 1:2", padded},
      {"--window 5 --padding 0:0", Mask::none}};  // hides nothing
  std::set<double> values;
  for (const auto& [said, mask] : cases) {
    const auto records = measured("--weights " + (folder / "w.safetensors") +
                                  " --num-heads 3 " + said);
    ASSERT_EQ(records.size(), 1u);
    const double exact =
        dense_norm(dense_jacobian(weights, {.mask = mask}, x)).value;
    EXPECT_NEAR(records[0]["lower"], exact, 1e-9 * exact) << said;
    EXPECT_GE(records[0]["upper"], exact * (1 - 1e-12)) << said;
    EXPECT_EQ(records[0]["mask"], name_of(mask)) << said;
    values.insert(exact);
  }
  EXPECT_EQ(values.size(), cases.size());  // every mask matters
}

// Qwen2 with two layers, of which the second has a window of two tokens.
class MasksOfAModel : public testing::Test {
 protected:
  MasksOfAModel() {
    std::filesystem::create_directory(dir);
    config.architecture = Architecture::qwen2;
    config.output_bias = config.mlp_bias = false;
    json said = json::parse(test::config_json(config));
    said.update({{"use_sliding_window", true},
                 {"sliding_window", 2},
                 {"max_window_layers", 1}});
    test::write_file(dir + "/config.json", said.dump());
    test::write_tensors(dir + "/model.safetensors",
                        test::random_tensors(config, 3));
    test::write_file(folder / "ids", "1 2 3 4 5 6 7 8 9");
  }

  std::vector<json> asked(const std::string& options) const {
    return measured(dir + " --samples 1 --dtype f64 --ids " + (folder / "ids") +
                    " " + options);
  }
  std::vector<std::string> masks(const std::string& options) const {
    std::vector<std::string> found;
    for (const json& r : asked(options)) found.push_back(r["mask"]);
    return found;
  }

  const test::Folder folder;
  const std::string dir = folder / "m";
  ModelConfig config = test::small_config(Architecture::llama);
};

TEST_F(MasksOfAModel, AreThoseOfEachLayerAtItsOwnLength) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(masks("--lengths 2"), (Names{"causal", "causal"}));
  EXPECT_EQ(masks("--lengths 4"), (Names{"causal", "causal, window 2"}));
  EXPECT_EQ(masks("--lengths 4 --window 3"),
            (Names{"causal, window 3", "causal, window 2"}));
  EXPECT_EQ(masks("--lengths 4 --mask causal"), (Names{"causal", "causal"}));
  EXPECT_EQ(masks("--lengths 4 --mask none --window 3"),
            (Names{"window 3", "window 3"}));
  EXPECT_EQ(masks("--lengths 4 --padding 0:1"),
            (Names{"causal, padding 0 before and 1 after",
                   "causal, window 2, padding 0 before and 1 after"}));
  EXPECT_EQ(masks("--lengths 4 --map model"),
            (Names{"causal, window 2 in 1 of 2 layers"}));
  EXPECT_EQ(masks("--lengths 2 --map model"), (Names{"causal"}));
  EXPECT_EQ(masks("--lengths 4 --map model --window 1"),
            (Names{"causal, window 1"}));
  // people see that they differ
  const Outcome shown = test::lipscope(
      "measure " + dir + " --lengths 4 --samples 1 --ids " + (folder / "ids"));
  EXPECT_NE(shown.out.find("mask of each row"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("causal, window 2"), std::string::npos) << shown.out;
}

// the window of the layer itself, and padding on the way to it
TEST_F(MasksOfAModel, AreThoseByWhichItRuns) {
  const Model model = load_model(dir);
  MaskChoice padding;
  padding.padding_after = 1;
  for (const bool padded : {false, true}) {
    const MaskChoice choice = padded ? padding : MaskChoice();
    const auto states = ForwardPass<double>(
        model, {.mask = choice})(std::vector<Index>{1, 2, 3, 4, 5});
    for (const json& r : asked(std::string("--lengths 5 --map block") +
                               (padded ? " --padding 0:1" : ""))) {
      const Index l = r["layer"];
      const auto f = layer_map<double>(load_layer(model, l), MapName::block,
                                       {.mask = choice});
      const double exact =
          dense_norm(materialize(*f->linearize(states.layer[l]))).value;
      EXPECT_NEAR(r["lower"], exact, 1e-6 * exact) << r;
      EXPECT_GE(r["upper"], exact * (1 - 1e-9)) << r;
    }
  }
}

TEST_F(MasksOfAModel, AreNotMixedByResume) {
  const auto lines = [&] {
    return json_lines(test::read_file(folder / "out.jsonl")).size();
  };
  const std::string command = "measure " + dir + " --lengths 4 --samples 1 " +
                              "--ids " + (folder / "ids") + " --out " +
                              (folder / "out.jsonl");
  ASSERT_EQ(test::lipscope(command).code, 0);
  const std::size_t once = lines();
  ASSERT_EQ(test::lipscope(command + " --resume").code, 0);
  EXPECT_EQ(lines(), once);
  ASSERT_EQ(test::lipscope(command + " --resume --padding 0:1").code, 0);
  EXPECT_EQ(lines(), once + 2);
  // the second layer has a narrower window itself
  ASSERT_EQ(test::lipscope(command + " --resume --window 3").code, 0);
  EXPECT_EQ(lines(), once + 3);
}

TEST_F(MasksOfAModel, AreRefusedWhereATokenSeesNothing) {
  const std::string ids = " --lengths 4 --samples 1 --ids " + (folder / "ids");
  expect_refusal(test::lipscope("measure " + dir + ids + " --padding 0:3"), 2,
                 {"--padding", "token 3 of 4 sees no token"});
  // the map has no mask, but the model that leads to it has
  expect_refusal(
      test::lipscope("measure " + dir + ids + " --mask none --padding 1:0"), 2,
      {"--padding", "token 0 of 4 sees no token"});
}

TEST_F(MasksOfAModel, TakesTheInputOfItsFirstLayer) {
  const Model model = load_model(dir);
  write_npy(folder / "e.npy", embed<double>(model, {1, 2, 3, 4}));
  for (const std::string map : {"attn", "residual", "block", "model"}) {
    const auto from_ids = asked("--lengths 4 --map " + map);
    const auto from_embedded = measured(dir + " --dtype f64 --embedded " +
                                        (folder / "e.npy") + " --map " + map);
    ASSERT_EQ(from_ids.size(), from_embedded.size());
    for (std::size_t i = 0; i < from_ids.size(); ++i) {
      EXPECT_EQ(from_ids[i]["lower"], from_embedded[i]["lower"]) << map;
      EXPECT_EQ(from_embedded[i]["input"]["from"], "embedded");
    }
  }
  // attention alone has another input
  const auto attention = measured(dir + " --input " + (folder / "e.npy"));
  EXPECT_NE(attention[0]["lower"], asked("--lengths 4")[0]["lower"]);
}

}  // namespace masks_test
}  // namespace lipscope
