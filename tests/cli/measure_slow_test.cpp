// lipscope measure where a run takes seconds.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/io/safetensors.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace measure_slow_test {

using test::json_lines;
using test::Outcome;

TEST(MeasureAtScale, InfNormIsTheLargestRowSum) {
  // N = 1001 tokens at 0 and ±√(p+1): 17.0542 in closed form, below 18.6853
  const double p = 4.42132;
  Matrix line = Matrix::Zero(1001, 1);
  line.block(1, 0, 500, 1).setConstant(std::sqrt(p + 1));
  line.block(501, 0, 500, 1).setConstant(-std::sqrt(p + 1));
  const Matrix one = Matrix::Ones(1, 1);
  const test::Folder folder;
  const std::string file = folder / "line.safetensors";
  write_safetensors(file, {{"q", one}, {"v", one}, {"x", line}});
  const Outcome run = test::lipscope(
      "measure --json --kind l2 --norm inf "
      "--num-heads 1 --weights " +
      file);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = json_lines(run.out).at(0);
  EXPECT_NEAR(record["lower"], 17.0542, 1e-4);
  EXPECT_EQ(record["norm"], "inf");
  EXPECT_EQ(record["lower_by"], "row-sweep");
}

TEST(MeasureAtScale, EnclosesALayerOfTheSizeOfGpt2) {
  const Outcome run = test::lipscope(
      "measure --json --random d=768,heads=12 --length 128 --mask causal "
      "--enclose 1.05");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = json_lines(run.out).at(0);
  EXPECT_EQ(record["status"], "converged");
  EXPECT_EQ(record["delta"], 1e-10);
  EXPECT_LE(record["upper_whp"], 1.05 * record["lower"].get<double>());
  // N = 98304: ln(1.648 sqrt(N)/(delta/2)) = 29.9 needs 2m - 1 >= 29.9/0.305
  EXPECT_GE(record["steps"], 49);
  EXPECT_LE(record["steps"], 120);
}

}  // namespace measure_slow_test
}  // namespace lipscope
