// What the families of the campaign compare that are proofs at an input, and
// that they find a wrong one.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/campaign/tally.h"

namespace lipscope {
namespace families_slow_test {

using campaign::examine;
using campaign::Families;
using campaign::families_named;
using campaign::Tally;

Tally tally_over(std::uint64_t cases, const Families& families,
                 const campaign::Weakened& weakened = {}) {
  Tally tally;
  for (std::uint64_t k = 0; k < cases; ++k)
    tally.add(examine(7, k, families, weakened).claims, k);
  return tally;
}

TEST(CampaignFamilies, ViolateNothingAndCompareWhatIsProved) {
  const Tally tally =
      tally_over(1500, families_named("proved-layer,many,proved-layer"));
  for (const Tally::Violation& v : tally.violations())
    ADD_FAILURE() << v.name << ": " << v.seen.most << " at case "
                  << v.seen.where;
  std::set<std::string> expected{"column_sums (many)",
                                 "column_sums_causal (many)",
                                 "l2_kernel (many)",
                                 "ramapuram24_ball (many)",
                                 "at X: token_pairs (many)",
                                 "at X: leading_apart (many)",
                                 "at X: exact_norm (many)",
                                 "at X: leading_apart (dot, rotary, many)",
                                 "at X: leading_apart (dot, q/k-norm, many)"};
  for (const std::string proof :
       {"leading_apart: ", "exact_norm: ", "split_paths: "}) {
    for (const std::string kind : {"dot", "dot, rotary", "dot, q/k-norm",
                                   "sigmoid", "l2", "cosine", "l2-untied"})
      expected.insert(proof + "attn(" + kind + ")");
    for (const std::string map : {"core", "residual", "block"})
      expected.insert(proof + map + "(dot)");
  }
  for (const std::string kind : {"l2", "cosine", "sigmoid", "l2-untied"})
    for (const std::string proof : {"leading_apart", "exact_norm"})
      expected.insert("at X: " + proof + " (" + kind + ", many)");
  for (const std::string& name : expected) {
    const auto at = tally.seen().find(name);
    ASSERT_NE(at, tally.seen().end()) << name;
    EXPECT_GE(at->second.cases, 5u) << name;
    EXPECT_GT(at->second.most, 0.0) << name;
  }
}

TEST(CampaignFamilies, FindAProofThatIsHalfOfWhatItShouldBe) {
  const Families both = families_named("many,proved-layer");
  for (const std::string name :
       {"at X: leading_apart (many)", "at X: exact_norm (many)",
        "leading_apart: attn(dot)", "leading_apart: block(dot)",
        "exact_norm: attn(sigmoid)", "split_paths: core(dot)"}) {
    const auto found = tally_over(600, both, {name, 0.5}).violations();
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].name, name);
  }
}

}  // namespace families_slow_test
}  // namespace lipscope
