// certify as a user runs it.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace certify_test {

// a text, and small models that read a little of it
class Certify : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    std::ofstream file(text());
    for (int i = 0; i < 40; ++i) file << "a river runs by the hill. ";
    file.close();
    for (const char* model : {"l2 --norm none", "dot --norm post",
                              "l2-untied --norm pre", "lstm"}) {
      const std::string name =
          std::string(model).substr(0, std::string(model).find(' '));
      const Outcome o = lipscope(
          "train " + text() + " --out " + (*folder_ / name) + " --model " +
          model +
          " --layers 1 --width 8 --heads 2 --context 8 --batch 4 --steps 30 "
          "--eval-every 30 --lr 0.01 --warmup 1 --threads 1 --measure 0 "
          "--quiet");
      ASSERT_EQ(o.code, 0) << o.err;
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string text() { return *folder_ / "text.txt"; }
  static std::string command(const std::string& model,
                             const std::string& more) {
    return "certify " + (*folder_ / model) + " --text " + text() +
           " --split test --quiet " + more;
  }

  static Folder* folder_;
};
Folder* Certify::folder_ = nullptr;

TEST_F(Certify, SaysWhatIsProvedAndWhatIsFoundAtEachPosition) {
  const Outcome o = lipscope(command("l2", "--positions 20 --json"));
  ASSERT_EQ(o.code, 0) << o.err;
  const auto records = json_lines(o.out);
  ASSERT_EQ(records.size(), 20u);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& r = records[i];
    EXPECT_EQ(r["command"], "certify");
    EXPECT_EQ(r["map"], "model");
    EXPECT_EQ(r["mask"], "causal");
    EXPECT_EQ(r["norm"], "2");
    EXPECT_EQ(r["n"], i % 8 + 1);
    EXPECT_EQ(r["sample"], i);
    EXPECT_EQ(r["parameters"]["from"], "input of layer 0");
    EXPECT_EQ(r["lower_is"], "proved");
    EXPECT_EQ(r["quantity"], "distance to a change of prediction");
    EXPECT_EQ(r["upper_is"], "found");
    EXPECT_EQ(r["lower_by"], "deviation(l2_row_sums)");
    EXPECT_EQ(r["upper_by"], "attack");
    EXPECT_GT(r["lower"].get<double>(), 0.0);
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
    EXPECT_NEAR(r["details"]["lower_log10"].get<double>(),
                std::log10(r["lower"].get<double>()), 1e-9);
    EXPECT_NE(r["details"]["predicted"], r["details"]["becomes"]);
  }
}

TEST_F(Certify, CountsThePositionsAtEachRadius) {
  const Outcome all = lipscope(command("l2", "--positions 20 --json"));
  const auto records = json_lines(all.out);
  // a radius between the sixth and seventh of both kinds
  std::vector<double> lower;
  for (const auto& r : records) lower.push_back(r["lower"]);
  std::sort(lower.begin(), lower.end());
  const double radius = std::sqrt(lower[13] * lower[14]);
  const Outcome o = lipscope(
      command("l2", "--positions 20 --radii " + std::to_string(radius)) +
      ",1e9");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("30.0 %"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("20 positions"), std::string::npos) << o.out;
  // nothing is certified at 1e9, and everything attacked
  const std::string last = o.out.substr(o.out.find("1e+09"));
  EXPECT_NE(last.find("0.0 %"), std::string::npos);
  EXPECT_NE(last.find("100.0 %"), std::string::npos);
}

TEST_F(Certify, DoesNotDependOnThreadsAndGoesOnWhereItWas) {
  const std::string out = *folder_ / "l2.jsonl";
  const Outcome one = lipscope(command("l2",
                                       "--positions 12 --threads 1 "
                                       "--json"));
  ASSERT_EQ(
      lipscope(command("l2", "--positions 5 --threads 2 --out " + out)).code,
      0);
  ASSERT_EQ(lipscope(command("l2",
                             "--positions 12 --threads 2 --resume "
                             "--out " +
                                 out))
                .code,
            0);
  const auto direct = json_lines(one.out), resumed = json_lines(contents(out));
  ASSERT_EQ(direct.size(), 12u);
  ASSERT_EQ(resumed.size(), 12u);
  for (std::size_t i = 0; i < direct.size(); ++i)
    EXPECT_EQ(without_times(direct[i]), without_times(resumed[i])) << i;
}

TEST_F(Certify, GivesOrdinaryModelsTheirAnswerInLogarithms) {
  const Outcome o = lipscope(command("dot", "--positions 8 --json"));
  ASSERT_EQ(o.code, 0) << o.err;
  for (const auto& r : json_lines(o.out)) {
    EXPECT_EQ(r["lower_by"], "deviation(row_sums)");
    EXPECT_LT(r["details"]["lower_log10"].get<double>(), 0.0);
    EXPECT_GT(r["details"]["gain_log10"].get<double>(), 0.0);
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
  }
  EXPECT_NE(lipscope(command("dot", "--positions 8"))
                .out.find("no constant holds everywhere: layer 0"),
            std::string::npos);
}

TEST_F(Certify, SaysWhereNothingIsProved) {
  const Outcome o = lipscope(command("l2-untied", "--positions 8 --json"));
  ASSERT_EQ(o.code, 0) << o.err;
  for (const auto& r : json_lines(o.out)) {
    EXPECT_TRUE(r["lower"].is_null());
    EXPECT_TRUE(r["lower_by"].is_null());
    EXPECT_GT(r["upper"].get<double>(), 0.0);
    EXPECT_EQ(r["details"]["nothing_proved"],
              "layer 0, attention: nothing is proved of l2-untied attention");
  }
  const Outcome read = lipscope(command("l2-untied", "--positions 2"));
  EXPECT_NE(read.out.find("no radius is proved: layer 0, attention: nothing is "
                          "proved of l2-untied attention"),
            std::string::npos)
      << read.out;
}

TEST_F(Certify, ShowsTheConstantsByPart) {
  const Outcome o = lipscope(command("dot", "--positions 8 --targets 0"));
  ASSERT_EQ(o.code, 0) << o.err;
  const std::string parts =
      o.out.substr(o.out.find("log10 of the constants by part, at position 7"));
  for (const char* part : {"attention ", "attention_norm", "mlp ", "mlp_norm"})
    EXPECT_NE(parts.find(part), std::string::npos) << part << parts;
  const auto records = json_lines(
      lipscope(command("dot", "--positions 8 --targets 0 --json")).out);
  for (const auto& r : records) {
    ASSERT_EQ(r["details"]["parts_log10"].size(), 1u);
    EXPECT_EQ(r["details"]["parts_log10"][0].size(), 5u);  // and the layer
  }
}

TEST_F(Certify, ReadsNoMoreTokensThanTheContext) {
  const Outcome o =
      lipscope(command("l2", "--positions 7 --context 3 --targets 0 --json"));
  ASSERT_EQ(o.code, 0) << o.err;
  const auto records = json_lines(o.out);
  ASSERT_EQ(records.size(), 7u);
  for (std::size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(records[i]["n"], i % 3 + 1);
  expect_refusal(lipscope(command("l2", "--context 9")), 2,
                 {"--context 9", "8 tokens"});
}

TEST_F(Certify, CanLeaveTheAttackOut) {
  const Outcome o = lipscope(command("l2", "--positions 8 --targets 0 --json"));
  ASSERT_EQ(o.code, 0) << o.err;
  for (const auto& r : json_lines(o.out)) {
    EXPECT_TRUE(r["upper"].is_null());
    EXPECT_EQ(r["status"], "converged");
  }
}

TEST_F(Certify, RefusesByName) {
  expect_refusal(lipscope(command("lstm", "")), 2, {"LSTM"});
  expect_refusal(lipscope(command("none", "")), 2, {"none", "no such folder"});
  std::ofstream(*folder_ / "other.txt") << "a river \xc3\xa9";
  expect_refusal(lipscope("certify " + (*folder_ / "l2") + " --text " +
                          (*folder_ / "other.txt")),
                 2, {"other.txt", "byte 8", "U+00E9"});
  std::ofstream(*folder_ / "short.txt") << "a";
  expect_refusal(lipscope("certify " + (*folder_ / "l2") + " --text " +
                          (*folder_ / "short.txt")),
                 2, {"1 tokens"});
  std::filesystem::create_directory(*folder_ / "bare");
  std::filesystem::copy(*folder_ / "l2/config.json",
                        *folder_ / "bare/config.json");
  expect_refusal(lipscope(command("bare", "")), 2,
                 {"bare", "no *.safetensors"});
  EXPECT_EQ(lipscope(command("l2", "--radii 0.1,-1")).code, 2);
}

}  // namespace certify_test
}  // namespace lipscope::test
