// Certificates and bounds of real models through the program, where those are
// at hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/cli/program.h"
#include "tests/support/shared_files.h"

namespace lipscope {
namespace bound_slow_test {

using test::json_lines;
using test::Outcome;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.at(v.size() / 2);
}

// upper/lower of every record, and how long proving and measuring took
struct Certified {
  std::vector<double> ratios;
  double proving = 0.0, measuring = 0.0;
};

Certified certified(const std::string& options, const std::string& by) {
  const std::string shared = test::shared_folder()->string();
  const Outcome run = test::lipscope(
      "measure " + shared + "/models/minilm-l6-v2-fp16 --text " + shared +
      "/data/alice29.txt --layers 0,2,5 --json " + options);
  EXPECT_EQ(run.code, 0) << run.err;
  Certified found;
  for (const auto& r : json_lines(run.out)) {
    if (r["command"] != "measure") continue;
    EXPECT_EQ(r["upper_by"], by);
    found.ratios.push_back(r["upper"].get<double>() / r["lower"].get<double>());
    const double proving = r["details"]["upper_seconds"];
    found.proving += proving;
    found.measuring += r["seconds"].get<double>() - proving;
  }
  return found;
}

TEST(CertificatesOfMiniLM, AreCloseAndCostAboutWhatMeasuringDoes) {
  if (!test::shared_folder()) GTEST_SKIP() << "no shared models";
  const Certified split =
      certified("--lengths 8:100:24 --samples 2", "split_paths");
  const Certified blocks = certified(
      "--lengths 8,16 --samples 1 --certificate blocks", "token_pairs");
  const Certified heads =
      certified("--lengths 16,32 --samples 1 --heads each", "token_pairs");
  std::printf("split: median %.2f, %.2f s beside %.2f s of measuring\n",
              median(split.ratios), split.proving, split.measuring);
  std::printf("blocks: median %.2f; single heads: median %.2f\n",
              median(blocks.ratios), median(heads.ratios));
  EXPECT_EQ(split.ratios.size(), 24u);
  EXPECT_LE(median(split.ratios), 6.0);
  // about 0.8 (docs/benchmarks.md); seconds on a busy machine vary
  EXPECT_LE(split.proving, 2 * split.measuring);
  EXPECT_LE(median(blocks.ratios), 3.0);
  EXPECT_LE(median(heads.ratios), 2.0);
}

TEST(BoundsOfGpt2, AllHeadsTakeLessThanAMinute) {
  if (!test::shared_folder()) GTEST_SKIP() << "no shared models";
  const auto start = std::chrono::steady_clock::now();
  const Outcome run = test::lipscope(
      "bound " + test::shared_folder()->string() +
      "/models/gpt2-124M-attention-only --heads each --length 1024 --json");
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  ASSERT_EQ(run.code, 0) << run.err;
  int best = 0;
  for (const auto& r : json_lines(run.out))
    best += r["details"]["best"].get<bool>();
  EXPECT_EQ(best, 144);
  EXPECT_LT(seconds.count(), 60.0);
}

}  // namespace bound_slow_test
}  // namespace lipscope
