// `upper (whp)` never stands above the certain `upper`, in any command.

#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace lipscope {
namespace likely_test {

// how many records have both, and in how many the certain one is the smaller
struct Seen {
  int both = 0, certain = 0;
};

Seen look_at(const std::string& command) {
  const test::Outcome run = test::lipscope(command + " --quiet --json");
  EXPECT_EQ(run.code, 0) << command << "\n" << run.err;
  Seen seen;
  for (const nlohmann::json& r : test::json_lines(run.out)) {
    if (!r.contains("upper_whp") || r["upper_whp"].is_null() ||
        r["upper"].is_null())
      continue;
    ++seen.both;
    EXPECT_LE(r["upper_whp"], r["upper"]) << command << "\n" << r.dump();
    const nlohmann::json details = r.value("details", nlohmann::json::object());
    if (!details.contains("upper_whp_by")) continue;
    ++seen.certain;
    EXPECT_EQ(r["upper_whp"], r["upper"]);
    EXPECT_EQ(details["upper_whp_by"], r["upper_by"]);
  }
  return seen;
}

TEST(LikelyBound, IsTheCertainOneWhereThatIsSmaller) {
  // one head, few tokens: token_pairs is within a percent, and 16 steps are not
  const Seen one = look_at(
      "measure --random d=64,heads=1 --lengths 16,32 --enclose 3 --threads 1");
  EXPECT_EQ(one.both, 2);
  EXPECT_EQ(one.certain, 2);
  const Seen masked = look_at(
      "measure --random d=48,heads=1,scale=0.1 --lengths 12,24 --enclose 3 "
      "--mask causal --threads 1");
  EXPECT_GE(masked.certain, 1);
}

TEST(LikelyBound, StandsByItselfWhereItSaysMore) {
  const Seen layer = look_at(
      "measure --random d=64,heads=4,scale=0.3 --length 16 --enclose 1.5 "
      "--threads 1");
  EXPECT_EQ(layer.both, 1);
  EXPECT_EQ(layer.certain, 0);
}

TEST(LikelyBound, StandsAboveNoCertainOneInAnyCommand) {
  int both = 0;
  for (const std::string command :
       {"measure --random d=64,heads=2 --lengths 4,16 --enclose 2 --heads each",
        "measure --random d=64,heads=2 --length 12 --kind l2 --enclose 2",
        "measure --random d=64,heads=2 --length 12 --kind cosine --enclose 4",
        "measure --random d=64,heads=2 --length 12 --kind sigmoid --enclose 4",
        "measure --random bert --length 4 --layers 0 --map block --enclose 4 "
        "--dtype f32",
        "meanfield --random d=64,heads=1 --length 16 --enclose 3",
        "meanfield --random d=24,heads=2 --length 6",
        "bound --random d=64,heads=2 --length 12",
        "search --random d=3,heads=1,scale=1 --length 4 --radius 1 --restarts "
        "1 --max-evaluations 40"})
    both += look_at(command + " --threads 1").both;
  EXPECT_GE(both, 8);
}

}  // namespace likely_test
}  // namespace lipscope
