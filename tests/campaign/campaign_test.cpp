// The campaign itself: it finds what is wrong, its cases can be made again, and
// what was killed goes on.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lipscope/core/errors.h"
#include "tests/campaign/tally.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace campaign_test {

using campaign::Claim;
using campaign::examine;
using campaign::Tally;

constexpr std::uint64_t some_cases = 3000;

Tally tally_over(std::uint64_t from, std::uint64_t to,
                 const campaign::Weakened& weakened = {}) {
  Tally tally;
  for (std::uint64_t k = from; k < to; ++k)
    tally.add(examine(7, k, {}, weakened).claims, k);
  return tally;
}

class Campaign : public testing::Test {
 protected:
  static const Tally& some() {
    static const Tally tally = tally_over(0, some_cases);
    return tally;
  }
};

TEST_F(Campaign, ViolatesNothing) {
  for (const Tally::Violation& v : some().violations())
    ADD_FAILURE() << v.name << ": " << v.seen.most << " at case "
                  << v.seen.where;
}

TEST_F(Campaign, ComparesEveryBoundThatThereIs) {
  const std::set<std::string> expected{"castin24_ball",
                                       "castin24_meanfield",
                                       "column_sums",
                                       "column_sums_meanfield",
                                       "column_sums_causal",
                                       "hardy_meanfield",
                                       "row_sums",
                                       "kim21_inf",
                                       "l2_coordinates",
                                       "kim21_two",
                                       "l2_diagonal_apart",
                                       "l2_row_sums",
                                       "l2_kernel",
                                       "qi23_cosine",
                                       "cosine_column_sums",
                                       "ramapuram24_ball",
                                       "at X: castin24_ball",
                                       "at X: castin24_data",
                                       "at X: yudin25_local",
                                       "at X: covariances",
                                       "at X: split_paths",
                                       "at X: token_pairs",
                                       "at X: split_paths (rotary)",
                                       "at X: split_paths (l2)",
                                       "at X: split_paths (cosine)",
                                       "at X: split_paths (sigmoid)",
                                       "at X: token_pairs (rotary)",
                                       "at X: token_pairs (l2)",
                                       "at X: token_pairs (cosine)",
                                       "at X: token_pairs (sigmoid)",
                                       "column_sums_masked (masked)",
                                       "column_sums_masked (rotary, masked)",
                                       "row_sums (masked)",
                                       "castin24_ball (masked)",
                                       "kim21_inf (masked)",
                                       "l2_coordinates (masked)",
                                       "kim21_two (masked)",
                                       "l2_diagonal_apart (masked)",
                                       "l2_row_sums (masked)",
                                       "l2_kernel (masked)",
                                       "qi23_cosine (masked)",
                                       "cosine_column_sums (masked)",
                                       "ramapuram24_ball (masked)",
                                       "at X: castin24_ball (masked)",
                                       "at X: castin24_data (masked)",
                                       "at X: yudin25_local (masked)",
                                       "at X: covariances (masked)",
                                       "at X: split_paths (masked)",
                                       "at X: token_pairs (masked)",
                                       "at X: split_paths (rotary, masked)",
                                       "at X: token_pairs (rotary, masked)",
                                       "at X: split_paths (l2, masked)",
                                       "at X: token_pairs (l2, masked)",
                                       "at X: split_paths (l2-untied, masked)",
                                       "at X: token_pairs (l2-untied, masked)",
                                       "at X: split_paths (cosine, masked)",
                                       "at X: token_pairs (cosine, masked)",
                                       "at X: split_paths (sigmoid, masked)",
                                       "at X: token_pairs (sigmoid, masked)",
                                       "at X: split_paths (q/k-norm)",
                                       "at X: token_pairs (q/k-norm)",
                                       "at X: split_paths (relative)",
                                       "at X: token_pairs (relative)",
                                       "at X: covariances (relative)",
                                       "row gain, dot (masked)",
                                       "row gain, l2 (masked)",
                                       "residual(dot, masked)",
                                       "block(dot, masked)",
                                       "at X: residual(dot, masked)",
                                       "at X: block(dot, masked)",
                                       "row gain, dot",
                                       "row gain, l2",
                                       "column_sums (rotary)",
                                       "column_sums_causal (rotary)",
                                       "row_sums (rotary)",
                                       "column_sums (after a norm)",
                                       "column_sums_causal (after a norm)",
                                       "row_sums (after a norm)",
                                       "column_sums_meanfield (measures)",
                                       "hardy_meanfield (measures)",
                                       "castin24_meanfield (measures)",
                                       "residual(dot)",
                                       "block(dot)",
                                       "residual(l2)",
                                       "block(l2)",
                                       "at X: residual(dot)",
                                       "at X: block(dot)",
                                       "norm_layer_everywhere",
                                       "at X: norm_layer_at",
                                       "layer_norm_everywhere_inf",
                                       "mlp_above",
                                       "mlp_above (gated)",
                                       "mlp_lipschitz inf",
                                       "weight_norm_above",
                                       "power_norm_above",
                                       "product_norm_above",
                                       "eigenvalue_above",
                                       "power_eigenvalue_above",
                                       "nonnegative_norm_above",
                                       "row_sum_above",
                                       "longest_row",
                                       "contractive L2, inf",
                                       "deviation gain, dot",
                                       "deviation gain, l2",
                                       "stack_constant, dot",
                                       "stack_constant, l2",
                                       "certified_radius, dot",
                                       "certified_radius, l2"};
  for (const std::string& name : expected) {
    const auto at = some().seen().find(name);
    ASSERT_NE(at, some().seen().end()) << name;
    EXPECT_GE(at->second.cases, 5u) << name;
    EXPECT_GT(at->second.most, 0.0) << name;
  }
}

TEST_F(Campaign, FindsABoundThatIsHalfOfWhatItShouldBe) {
  for (const std::string name : {"column_sums",
                                 "column_sums_causal",
                                 "row_sums",
                                 "l2_row_sums",
                                 "kim21_inf",
                                 "l2_kernel",
                                 "at X: covariances",
                                 "at X: split_paths",
                                 "at X: token_pairs",
                                 "ramapuram24_ball",
                                 "column_sums_meanfield (measures)",
                                 "row_sums (rotary)",
                                 "row_sums (after a norm)",
                                 "residual(dot)",
                                 "weight_norm_above",
                                 "norm_layer_everywhere",
                                 "column_sums_masked (masked)",
                                 "row_sums (masked)",
                                 "at X: split_paths (masked)",
                                 "at X: token_pairs (masked)",
                                 "at X: split_paths (q/k-norm)",
                                 "at X: token_pairs (relative)"}) {
    const Tally weak = tally_over(0, 480, {name, 0.5});
    const auto found = weak.violations();
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].name, name);
    // the case alone shows it again
    Tally alone;
    alone.add(examine(7, found[0].seen.where, {}, {name, 0.5}).claims,
              found[0].seen.where);
    ASSERT_EQ(alone.violations().size(), 1u) << name;
    EXPECT_EQ(alone.violations()[0].seen.most, found[0].seen.most);
  }
}

TEST_F(Campaign, TakesWhatIsNotANumberForAViolation) {
  Tally tally;
  tally.add({{"a", NAN, 1.0}, {"b", 1.0, 0.0}, {"c", 0.0, 0.0}}, 3);
  ASSERT_EQ(tally.violations().size(), 2u);
  EXPECT_EQ(tally.violations()[0].name, "a");
  EXPECT_EQ(tally.violations()[1].name, "b");
}

TEST_F(Campaign, CasesDependOnTheirNumberAndTheSeedAlone) {
  for (const std::uint64_t k : {3u, 11u, 26u, 44u, 77u, 95u}) {
    const std::vector<Claim> one = examine(7, k).claims,
                             again = examine(7, k).claims;
    ASSERT_EQ(one.size(), again.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].name, again[i].name);
      EXPECT_EQ(one[i].reached, again[i].reached);
      EXPECT_EQ(one[i].allowed, again[i].allowed);
    }
  }
}

TEST_F(Campaign, TalliesAreReadAsTheyWereWritten) {
  const Tally back = campaign::tally_of(to_json(some()));
  EXPECT_EQ(to_json(back).dump(), to_json(some()).dump());
  EXPECT_THROW(campaign::tally_of({{"column_sums", {1, 2}}}), InputError);
}

// the program: it stops with code 4 and the case, and what was cut goes on
test::Outcome program(const std::string& arguments) {
  return test::run_program(LIPSCOPE_CAMPAIGN, arguments);
}

TEST(CampaignProgram, GoesOnFromItsJournal) {
  const test::Folder folder;
  const std::string whole = folder / "whole.jsonl", cut = folder / "cut.jsonl";
  const std::string rest = " --chunk 50 --seed 7 --out ";
  const test::Outcome one = program("--cases 200" + rest + whole);
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(program("--cases 100" + rest + cut).code, 0);
  // the last line cut off in the middle, as by a kill
  const std::string lines = test::contents(cut);
  std::filesystem::resize_file(cut, lines.size() - 20);
  const test::Outcome two = program("--cases 200" + rest + cut);
  ASSERT_EQ(two.code, 0) << two.err;
  const auto table = [](const std::string& out) {
    return out.substr(out.find('|'));
  };
  EXPECT_EQ(table(one.out), table(two.out));
  const test::Outcome other =
      program("--cases 200 --chunk 50 --seed 8 --out " + cut);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("seed 7"), std::string::npos) << other.err;
}

TEST(CampaignProgram, StopsAtAViolationAndNamesTheCase) {
  const test::Folder folder;
  const std::string weak = " --seed 7 --weaken row_sums --factor 0.5";
  const test::Outcome run =
      program("--cases 5000 --chunk 200 --out " + (folder / "c.jsonl") + weak);
  EXPECT_EQ(run.code, 4);
  const std::size_t at = run.err.find("--case ");
  ASSERT_NE(at, std::string::npos) << run.err;
  const std::string number =
      std::to_string(std::stoull(run.err.substr(at + 7)));
  EXPECT_EQ(program("--case " + number + weak).code, 4);
  EXPECT_EQ(program("--case " + number + " --seed 7").code, 0);
  // it does not go on as if nothing had been
  EXPECT_EQ(
      program("--cases 5000 --chunk 200 --seed 7 --out " + (folder / "c.jsonl"))
          .code,
      4);
}

}  // namespace campaign_test
}  // namespace lipscope
