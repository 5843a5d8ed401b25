#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"

namespace lipscope {
namespace eval_test {

using nlohmann::json;
using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::lipscope;
using test::Outcome;

class Eval : public testing::Test {
 protected:
  // a model whose best weights are not its last ones
  void SetUp() override {
    std::ofstream file(text);
    for (int i = 0; i < 680; ++i)
      file << "the river " << i % 17 << " runs by hill " << i % 20 << ". ";
    file.close();
    const Outcome trained =
        lipscope("train " + text + " --out " + model +
                 " --layers 1 --width 8 --heads 2 --context 8 --batch 2 "
                 "--steps 3 --eval-every 1 --lr 3 --warmup 0 --schedule fixed "
                 "--measure 0 --threads 1 --json --quiet");
    ASSERT_EQ(trained.code, 0) << trained.err;
    lines = json_lines(trained.out);
  }

  json evaluated(const std::string& options) const {
    const Outcome o = lipscope("eval " + model + " --text " + text + " " +
                               options + " --json --threads 1");
    EXPECT_EQ(o.code, 0) << o.err;
    return o.code == 0 ? json_lines(o.out).front() : json{};
  }

  json ended(const std::string& split) const {
    for (const json& r : lines)
      if (r["parameters"].value("split", "") == split) return r;
    return {};
  }

  const Folder folder;
  const std::string text = folder / "text.txt", model = folder / "model";
  std::vector<json> lines;
};

TEST_F(Eval, SaysWhatTheEndOfTheRunSaid) {
  const json whole = evaluated("--split last-tenth --weights last");
  EXPECT_EQ(whole["nll"], ended("last tenth")["value"]);
  EXPECT_EQ(whole["accuracy"], ended("last tenth")["details"]["accuracy"]);
  const json windows =
      evaluated("--split last-tenth --weights last --windows newhouse25");
  EXPECT_EQ(windows["nll"], ended("newhouse25 windows")["value"]);
  EXPECT_EQ(windows["accuracy"],
            ended("newhouse25 windows")["details"]["accuracy"]);
  EXPECT_EQ(windows["characters"], 1280 * 256);
  EXPECT_NE(windows["nll"], whole["nll"]);
}

TEST_F(Eval, ReadsTheBestOrTheLastWeights) {
  const json best = evaluated("--split test"),
             last = evaluated("--split test --weights last");
  EXPECT_EQ(best["nll"], ended("test")["value"]);
  EXPECT_NE(best["nll"], last["nll"]);
  EXPECT_NE(best["model_sha256"], last["model_sha256"]);
}

TEST_F(Eval, ShowsCountedNGramsBesideTheModel) {
  const json e = evaluated("--split last-tenth --ngrams 4");
  ASSERT_EQ(e["ngrams"].size(), 4u);
  EXPECT_EQ(e["ngrams"][3]["n"], 4);
  EXPECT_GT(e["ngrams"][0]["nll"], e["ngrams"][2]["nll"]);
  EXPECT_LT(e["ngrams"][0]["accuracy"], e["ngrams"][2]["accuracy"]);
  const Outcome table = lipscope("eval " + model + " --text " + text +
                                 " --split last-tenth --ngrams 4 "
                                 "--windows newhouse25 --threads 1");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("Newhouse25's 1,280 windows"), std::string::npos);
  EXPECT_NE(table.out.find("4-grams: "), std::string::npos) << table.out;
}

TEST_F(Eval, RefusesWhatDoesNotGoTogether) {
  const std::string run = "eval " + model + " --text " + text;
  expect_refusal(lipscope(run + " --windows newhouse25"), 2,
                 {"--windows newhouse25", "last-tenth"});
  expect_refusal(lipscope(run + " --ngrams 3"), 2, {"--ngrams 3", "nine"});
  std::ofstream(folder / "short.txt") << "the river runs by hill 1. ";
  expect_refusal(
      lipscope("eval " + model + " --text " + (folder / "short.txt") +
               " --split last-tenth --windows newhouse25"),
      2, {"short.txt", "1536"});
}

}  // namespace eval_test
}  // namespace lipscope
