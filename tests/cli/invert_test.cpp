#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/io/npy.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace invert_test {

using nlohmann::json;
using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::Outcome;

const std::string small = "invert --random d=8,heads=2,scale=0.4 --threads 1 ";

std::vector<json> inverted(const std::string& arguments) {
  const Outcome o = test::lipscope(small + arguments + " --json");
  EXPECT_EQ(o.code, 0) << o.err;
  return json_lines(o.out);
}

TEST(InvertCommand, RecordsErrorBoundAndCount) {
  const auto records = inverted("--length 6 --samples 3 --scale 0.9");
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) {
    EXPECT_EQ(r["command"], "invert");
    EXPECT_EQ(r["map"], "inverse");
    EXPECT_EQ(r["kind"], "contractive-l2");
    EXPECT_EQ(r["norm"], "inf");
    EXPECT_EQ(r["lower_by"], "reconstruction");
    EXPECT_EQ(r["upper_by"], "a-posteriori");
    EXPECT_EQ(r["status"], "converged");
    EXPECT_EQ(r["parameters"]["scale"], 0.9);
    const json& d = r["details"];
    EXPECT_EQ(d["contraction"], 0.9);
    EXPECT_EQ(d["lipschitz_by"], "kim21_inf");
    EXPECT_EQ(d["outcome"], "converged");
    EXPECT_LE(r["steps"].get<int>(), d["a_priori"].get<int>());
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
    EXPECT_LT(r["upper"].get<double>(), 1e-9);
    // one line for each of the first ten iterations, errors below bounds
    EXPECT_EQ(d["curve"].size(), r["steps"].get<std::size_t>());
    for (const json& line : d["curve"])
      EXPECT_LE(line["error"].get<double>(),
                line["bound"].get<double>() + 1e-14);
  }
  EXPECT_NE(records[0]["radius_max"], records[1]["radius_max"]);
}

TEST(InvertCommand, TriesDotProductAndSaysThatItFailed) {
  const std::string wide = "--length 16 --radius 200 --kind dot --scale 0.9 ";
  const auto records = inverted(wide + "--max-iterations 50");
  ASSERT_EQ(records.size(), 1u);
  const json& r = records[0];
  EXPECT_EQ(r["kind"], "dot");
  EXPECT_EQ(r["status"], "not-converged");
  EXPECT_NE(r["details"]["outcome"], "converged");
  EXPECT_TRUE(r["upper"].is_null());
  EXPECT_TRUE(r["details"]["a_priori"].is_null());
  EXPECT_TRUE(r["details"]["contraction"].is_null());
  EXPECT_GT(r["lower"].get<double>(), 0.1);
  EXPECT_EQ(test::lipscope(small + wide + "--max-iterations 5 --strict").code,
            3);
}

TEST(InvertCommand, PlainL2HasNoProofUnlessItsBoundIsSmall) {
  const json large = inverted("--length 6 --kind l2 --scale 0.9")[0];
  EXPECT_GT(large["details"]["lipschitz"].get<double>(), 1.0 / 0.9);
  EXPECT_TRUE(large["upper"].is_null());
  const json tiny = inverted("--length 6 --kind l2 --scale 0.001")[0];
  EXPECT_NEAR(tiny["details"]["contraction"].get<double>(),
              0.001 * large["details"]["lipschitz"].get<double>(), 1e-9);
  EXPECT_TRUE(tiny["upper"].is_number());
}

// what --input gives back is what the layer was given, for one more who knows
// only Y: X = Y − c f(X) is checked by inverting X + c f(X) once more
TEST(InvertCommand, ReadsYAndWritesX) {
  const Folder folder;
  Matrix y(3, 8);
  for (Index i = 0; i < y.size(); ++i) y.data()[i] = std::sin(1.0 + i);
  write_npy(folder / "y.npy", y);
  const json r = inverted("--input " + (folder / "y.npy") + " --save-input " +
                          (folder / "x.npy"))[0];
  EXPECT_TRUE(r["lower"].is_null());
  EXPECT_EQ(r["parameters"]["given"], "Y");
  EXPECT_LT(r["residual"].get<double>(), r["upper"].get<double>());
  const Matrix x = read_npy(folder / "x.npy");
  ASSERT_EQ(x.rows(), 3);
  // not Y, and as far from it as the first step says
  const double apart = (x - y).cwiseAbs().maxCoeff();
  const double step = r["details"]["curve"][0]["step"];
  EXPECT_GT(apart, 0.5 * step);
  EXPECT_LT(apart, 1.5 * step);
}

TEST(InvertCommand, StacksAddUpIterationsAndErrors) {
  const json one = inverted("--length 6 --scale 0.9")[0];
  const json four = inverted("--length 6 --scale 0.9 --depth 4")[0];
  EXPECT_GE(four["steps"].get<int>(), 3 * one["steps"].get<int>());
  // an error of the last block is stretched tenfold by each of the others
  EXPECT_GT(four["upper"].get<double>(), 100 * one["upper"].get<double>());
  EXPECT_LE(four["lower"].get<double>(), four["upper"].get<double>());
  EXPECT_FALSE(four["details"].contains("curve"));
}

TEST(InvertCommand, LogDetIsTheDenseValueWithinItsErrorBar) {
  for (const std::string depth : {"1", "3"}) {
    const Outcome o = test::lipscope(
        "invert --random d=1,heads=1,scale=1 --length 9 --scale 0.9 --log-det "
        "--probes 200 --threads 1 --json --depth " +
        depth);
    ASSERT_EQ(o.code, 0) << o.err;
    const json v = json_lines(o.out)[0]["details"]["log_det"];
    EXPECT_GT(std::abs(v["dense"].get<double>()), 0.1);
    EXPECT_NEAR(
        v["value"].get<double>(), v["dense"].get<double>(),
        2.0 * v["error_bar"].get<double>() + v["truncation"].get<double>());
    EXPECT_LT(v["error_bar"].get<double>(), 0.2);
  }
}

// One token with one feature: f(x) = ±x, and its bound is attained, so that the
// determinant is 1 ± c.
TEST(InvertCommand, LogDetOfOneNumberIsALogarithm) {
  const Outcome o = test::lipscope(
      "invert --random d=1,heads=1,scale=1 --length 1 --scale 0.75 --log-det "
      "--truncation 1e-10 --threads 1 --json");
  ASSERT_EQ(o.code, 0) << o.err;
  const json v = json_lines(o.out)[0]["details"]["log_det"];
  const double value = v["value"];
  EXPECT_NEAR(value, value > 0.0 ? std::log(1.75) : std::log(0.25), 1e-9);
  EXPECT_NEAR(v["dense"].get<double>(), value, 1e-9);
}

TEST(InvertCommand, PrintsTablesThatSayWhatIsInThem) {
  const Outcome o = test::lipscope(small + "--length 5 --log-det");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const std::string word :
       {"inverse of x + 0.5 f(x)", "contractive-l2", "mask none", "norm inf",
        "iterations  enough", "bound", "From iteration to iteration", "log det",
        "dense"})
    EXPECT_NE(o.out.find(word), std::string::npos) << word << "\n" << o.out;
}

TEST(InvertCommand, ResumesWithoutDoingItAgain) {
  const Folder folder;
  const std::string ask = small + "--length 5 --samples 2 --json --out " +
                          (folder / "r.jsonl") + " --resume";
  const std::string first = test::lipscope(ask).out;
  EXPECT_EQ(json_lines(first).size(), 2u);
  const std::string file = test::contents(folder / "r.jsonl");
  // the same to the last digit of the seconds: found, not made
  EXPECT_EQ(test::lipscope(ask).out, first);
  EXPECT_EQ(test::contents(folder / "r.jsonl"), file);
}

TEST(InvertCommand, RefusesWhatCannotBe) {
  expect_refusal(test::lipscope(small + "--length 5 --scale 1"), 2,
                 {"--scale 1", "below 1"});
  expect_refusal(test::lipscope(small + "--length 5 --kind other"), 2,
                 {"--kind other", "contractive-l2"});
  expect_refusal(test::lipscope(small + "--length 5 --kind dot --log-det"), 2,
                 {"--log-det", "no contraction is proved", "dot"});
  expect_refusal(
      test::lipscope(small + "--length 5 --samples 2 --save-input x.npy"), 2,
      {"--save-input", "2"});
  expect_refusal(test::lipscope(small + "--input /no/such/y.npy"), 2,
                 {"/no/such/y.npy"});
}

}  // namespace invert_test
}  // namespace lipscope
