#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"

namespace lipscope {
namespace search_test {

using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::Outcome;

// a small layer in a ball, and how little to try
const std::string small =
    "search --random d=3,heads=2,width=2,scale=1 --length 5 --radius 1.5 "
    "--restarts 2 --max-evaluations 40 --threads 1 ";

TEST(SearchCommand, EndsWithTheBestFoundAndItsBound) {
  const Outcome o = test::lipscope(small + "--json");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto records = json_lines(o.out);
  ASSERT_GE(records.size(), 2u);
  const auto& best = records.back();
  EXPECT_EQ(best["command"], "search");
  EXPECT_EQ(best["parameters"]["of"], "best");
  EXPECT_EQ(best["scope"], "ball");
  EXPECT_EQ(best["details"]["region"], "ball of radius 1.5");
  EXPECT_EQ(best["radius_max"], 1.5);
  EXPECT_LE(best["lower"].get<double>(), best["upper"].get<double>());
  EXPECT_NEAR(best["details"]["ratio"].get<double>(),
              best["upper"].get<double>() / best["lower"].get<double>(), 1e-12);
  EXPECT_LE(best["details"]["input_radius"].get<double>(), 1.5 * (1 + 1e-14));
  EXPECT_EQ(best["details"]["starts_left"], 0);
  for (const auto& r : records) {
    EXPECT_LE(r["lower"].get<double>(), best["lower"].get<double>());
    EXPECT_EQ(r["upper_by"], best["upper_by"]);
  }
  for (const auto& s : best["details"]["starts"])
    EXPECT_LE(s["value"].get<double>(), best["lower"].get<double>());
}

TEST(SearchCommand, SavesTheInputAndTheDirectionForMeasureToRepeat) {
  const Folder folder;
  for (const std::string norm : {"2", "inf", "token"}) {
    const Outcome found = test::lipscope(
        small + "--json --norm " + norm + " --save-input " +
        (folder / "x.npy") + " --save-direction " + (folder / "v.npy"));
    ASSERT_EQ(found.code, 0) << found.err;
    const Outcome again = test::lipscope(
        "measure --random d=3,heads=2,width=2,scale=1 --threads 1 --json "
        "--norm " +
        norm + " --input " + (folder / "x.npy"));
    ASSERT_EQ(again.code, 0) << again.err;
    const double lower = json_lines(found.out).back()["lower"];
    EXPECT_NEAR(json_lines(again.out).front()["lower"].get<double>(), lower,
                1e-9 * lower)
        << norm;
    EXPECT_TRUE(std::filesystem::exists(folder / "v.npy"));
  }
}

TEST(SearchCommand, SearchesWhatALayerNormLetsThrough) {
  const std::string layer =
      "search --random d=6,heads=2,scale=0.5 --length 4 --restarts 2 "
      "--max-evaluations 60 --threads 1 --json --radius ";
  const Outcome ln = test::lipscope(layer + "ln");
  ASSERT_EQ(ln.code, 0) << ln.err;
  const auto best = json_lines(ln.out).back();
  EXPECT_EQ(best["scope"], "norm layer");
  EXPECT_LE(best["details"]["input_radius"].get<double>(),
            std::sqrt(6.0) * (1 + 1e-12));
  EXPECT_LE(best["lower"].get<double>(), best["upper"].get<double>());
}

TEST(SearchCommand, PrintsATableForPeople) {
  const Outcome o = test::lipscope(small);
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* word :
       {"ball of radius 1.5", "upper/lower", "found from", "From each start",
        "balanced", "random 1", "recomputed in f64"})
    EXPECT_NE(o.out.find(word), std::string::npos) << word;
}

TEST(SearchCommand, ResumesWithoutSearchingAgain) {
  const Folder folder;
  const std::string command = small + "--out " + (folder / "s.jsonl");
  ASSERT_EQ(test::lipscope(command).code, 0);
  const std::string before = test::contents(folder / "s.jsonl");
  const Outcome again = test::lipscope(command + " --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(test::contents(folder / "s.jsonl"), before);
  // another question is answered
  ASSERT_EQ(test::lipscope(command + " --resume --norm inf").code, 0);
  EXPECT_NE(test::contents(folder / "s.jsonl"), before);
}

TEST(SearchCommand, SaysWhenItWasCut) {
  const Outcome cut =
      test::lipscope(small + "--budget 0.000001 --json --strict");
  EXPECT_EQ(cut.code, 3) << cut.err;
  const auto best = json_lines(cut.out).back();
  EXPECT_EQ(best["status"], "not-converged");
  EXPECT_GT(best["lower"].get<double>(), 0);
}

TEST(SearchCommand, RefusesWhatItCannotAnswer) {
  const std::string layer = "search --random d=3,heads=1 ";
  expect_refusal(test::lipscope(layer + "--length 4"), 2,
                 {"not Lipschitz everywhere, give --radius"});
  expect_refusal(test::lipscope(layer + "--length 4 --kind sigmoid"), 2,
                 {"sigmoid", "give --radius"});
  for (const std::string radius : {"0", "-1", "inf", "nan"})
    expect_refusal(test::lipscope(layer + "--length 4 --radius " + radius), 2,
                   {"--radius " + radius});
  expect_refusal(test::lipscope(layer + "--length 0 --radius 1"), 2,
                 {"0 tokens"});
  expect_refusal(test::lipscope(layer + "--length 4 --radius 1 --norm 3"), 2,
                 {"--norm 3"});
  expect_refusal(test::lipscope("search --random bert --length 4 --map block"),
                 2, {"--map block", "attn or core"});
  expect_refusal(test::lipscope(layer + "--lengths 4,5 --radius 1 --save-input "
                                        "x.npy"),
                 2, {"one search"});
}

}  // namespace search_test
}  // namespace lipscope
