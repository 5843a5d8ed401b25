// measure, bound and search on a folder that train made.

#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace trained_test {

// a folder of this mixer, trained for a moment, and its text
struct Trained {
  Folder folder;
  std::string text = folder / "text.txt", model = folder / "model";

  explicit Trained(const std::string& how) {
    std::ofstream file(text);
    for (int i = 0; i < 40; ++i) file << "a river runs by the hill. ";
    file.close();
    const Outcome o = lipscope("train " + text + " --out " + model + " " + how +
                               " --layers 2 --width 8 --heads 2 --context 8 "
                               "--batch 2 --steps 4 --eval-every 4 --measure 0 "
                               "--threads 1 --quiet");
    EXPECT_EQ(o.code, 0) << o.err;
  }

  Outcome ask(const std::string& command, const std::string& more) const {
    return lipscope(command + " " + model + " --json --quiet --threads 1 " +
                    more);
  }
};

TEST(TrainedFolder, IsMeasuredInAllMapsWithItsOwnAttention) {
  for (const std::string mixer : {"dot", "l2", "l2-untied", "contractive-l2"}) {
    const Trained t("--model " + mixer);
    for (const std::string map :
         {"core", "attn", "residual", "block", "model"}) {
      const Outcome o = t.ask("measure", "--text " + t.text + " --map " + map +
                                             " --lengths 6 --samples 1");
      ASSERT_EQ(o.code, 0) << o.err;
      const auto records = json_lines(o.out);
      EXPECT_EQ(records.size(), map == "model" ? 1u : 2u);
      for (const auto& r : records) {
        EXPECT_EQ(r["kind"], mixer);
        EXPECT_EQ(r["mask"], "causal");
        EXPECT_EQ(r["map"], map);
        EXPECT_GT(r["lower"].get<double>(), 0.0);
        EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
      }
    }
  }
}

// the bound on a layer holds at what the model reads
TEST(TrainedFolder, IsBoundedAboveWhatIsMeasured) {
  for (const std::string how :
       {"--model l2", "--model contractive-l2 --norm none",
        "--model dot --norm pre", "--model l2 --norm pre"}) {
    const Trained t(how);
    for (const std::string map : {"attn", "residual", "block", "model"}) {
      const Outcome below =
          t.ask("measure", "--text " + t.text + " --map " + map +
                               " --lengths 6 --samples 1 --certificate none");
      const Outcome above = t.ask("bound", "--length 6 --map " + map);
      ASSERT_EQ(below.code, 0) << below.err;
      ASSERT_EQ(above.code, 0) << above.err;
      for (const auto& measured : json_lines(below.out))
        for (const auto& bound : json_lines(above.out)) {
          if (bound["layer"] != measured["layer"]) continue;
          EXPECT_LE(measured["lower"].get<double>(),
                    bound["upper"].get<double>())
              << how << " " << map;
        }
    }
  }
}

TEST(TrainedFolder, IsCertifiedAtAnInputWithoutNorms) {
  const Trained t("--model dot --norm none");
  const Outcome o = t.ask("measure", "--text " + t.text +
                                         " --map block --lengths 6 --samples 1 "
                                         "--certificate all");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const auto& r : json_lines(o.out))
    for (const auto& [certificate, value] :
         r["details"]["certificates"].items())
      EXPECT_LE(r["lower"].get<double>(), value.get<double>()) << certificate;
}

TEST(TrainedFolder, IsSearched) {
  const Trained t("--model l2");
  const Outcome o =
      t.ask("search", "--length 3 --restarts 1 --max-evaluations 30");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto best = json_lines(o.out).back();
  EXPECT_LE(best["lower"].get<double>(), best["upper"].get<double>());
}

TEST(TrainedFolder, GivesItsTextBackIfItIsInvertible) {
  const Trained t("--invertible --contraction 0.8");
  const std::string saved = t.folder / "y.npy";
  for (const std::string activations : {"f64", "f32"}) {
    const Outcome o =
        t.ask("invert", "--text " + t.text + " --offset 26 --activations " +
                            activations + " --save-output " + saved);
    ASSERT_EQ(o.code, 0) << o.err;
    const auto r = json_lines(o.out).at(0);
    EXPECT_EQ(r["kind"], "contractive-l2");
    EXPECT_EQ(r["norm"], "inf");
    EXPECT_EQ(r["n"], 8);
    EXPECT_EQ(r["details"]["text"], "a river ");
    EXPECT_EQ(r["details"]["recovered"], 8);
    EXPECT_EQ(r["details"]["proved"], 8);
    EXPECT_EQ(r["details"]["blocks"].size(), 4u);
    EXPECT_EQ(r["details"]["blocks"][0]["block"], "layer 1 MLP");
    EXPECT_NEAR(r["details"]["blocks"][0]["contraction"].get<double>(), 0.8,
                1e-9);
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
    EXPECT_LT(r["upper"].get<double>(), r["details"]["margin"].get<double>());

    const Outcome back = t.ask("invert", "--input " + saved);
    ASSERT_EQ(back.code, 0) << back.err;
    const auto found = json_lines(back.out).at(0);
    EXPECT_EQ(found["details"]["text"], "a river ");
    EXPECT_EQ(found["details"]["proved"], 8);
    EXPECT_EQ(found["upper"], r["upper"]);
    EXPECT_TRUE(found["lower"].is_null());
  }
}

TEST(TrainedFolder, PromisesNothingOfATextThatItDidNotLearnToGiveBack) {
  const Trained t("--model dot --norm none");
  const Outcome o = t.ask("invert", "--text " + t.text);
  ASSERT_EQ(o.code, 0) << o.err;
  const auto r = json_lines(o.out).at(0);
  EXPECT_EQ(r["details"]["proved"], 0);
  EXPECT_TRUE(r["upper"].is_null());
}

TEST(TrainedFolder, SaysWhatItCannotDo) {
  const Trained l2("--model l2"), dot("--model dot"), none("--norm none");
  const Trained lstm("--model lstm");
  expect_refusal(l2.ask("measure", "--kind dot --text " + l2.text), 2,
                 {"--kind dot", "has l2 attention", "queries are its keys"});
  expect_refusal(lstm.ask("measure", "--text " + lstm.text), 2,
                 {"mixer is \"lstm\"", "an LSTM has no attention"});
  expect_refusal(dot.ask("bound", ""), 2,
                 {"no norm stands ahead of the attention of layer 0"});
  expect_refusal(none.ask("bound", "--map model --radius 1"), 2,
                 {"has no norms", "dot attention"});
  expect_refusal(dot.ask("measure", "--lengths 9 --text " + dot.text), 2,
                 {"window of 9 tokens", "8 positions"});
  expect_refusal(l2.ask("invert", "--text " + l2.text), 2,
                 {"has LayerNorms", "--invertible"});
  expect_refusal(none.ask("invert", "--scale 0.5 --text " + none.text), 2,
                 {"--scale", "is inverted as it was trained"});
  expect_refusal(none.ask("invert", ""), 2, {"which text?"});
  expect_refusal(lipscope("train " + dot.text + " --out " +
                          (dot.folder / "new") + " --invertible --norm post"),
                 2, {"--invertible", "norm none"});
  std::ofstream(dot.folder / "other.txt") << std::string(500, 'Z');
  expect_refusal(dot.ask("measure", "--text " + (dot.folder / "other.txt")), 2,
                 {"other.txt", "does not know the character U+005A"});
}

}  // namespace trained_test
}  // namespace lipscope::test
