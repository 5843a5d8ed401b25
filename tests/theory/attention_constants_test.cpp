#include "lipscope/theory/attention_constants.h"

#include <gtest/gtest.h>

#include "tests/theory/cases.h"

namespace lipscope {
namespace attention_constants_test {

// the largest norm of the rows of J that belong to one token
double row_norm(const Matrix& J, Index n) {
  const Index e = J.rows() / n;
  double most = 0.0;
  for (Index i = 0; i < n; ++i)
    most = std::max(most, test::norm2(J.middleRows(i * e, e)));
  return most;
}

TEST(AttentionConstants, AreTheBoundsOfTheSameName) {
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      test::Trial t = test::trial(kind, seed);
      t.options.project = true;
      const AttentionConstants constants(t.weights, kind, t.options.mask);
      for (const double R : {0.3, 7.0}) {
        const BoundSetting question = test::setting_of(t, R);
        const std::vector<Bound> all = bounds(t.weights, question);
        const AttentionGain gain = *constants.over(t.x.rows(), R);
        EXPECT_NEAR(gain.token.log10(),
                    test::find(all, constants.name())->log10, 1e-12);
        const std::string two = kind == Kind::l2 ? "l2_kernel"
                                : t.options.mask == Mask::causal
                                    ? "column_sums_causal"
                                    : "column_sums";
        EXPECT_NEAR(gain.two.log10(), test::find(all, two)->log10, 1e-12);
      }
    }
}

TEST(AttentionConstants, HoldAtInputsThatTryToBreakThem) {
  double closest = 0.0;
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      test::Trial t = test::trial(kind, seed);
      t.options.project = true;
      const double R = test::radius(t.x);
      if (seed % 3 == 0) t.x = test::climb(t, R, 12, Rng(seed).split(50));
      const Matrix J = test::jacobian(t);
      const AttentionConstants constants(t.weights, kind, t.options.mask);
      const AttentionGain gain = *constants.over(t.x.rows(), R);
      const double row = row_norm(J, t.x.rows());
      EXPECT_LE(row, gain.row.value() * (1 + 1e-9)) << "seed " << seed;
      EXPECT_LE(test::norm2(J), gain.two.value() * (1 + 1e-9));
      EXPECT_LE(test::token_norm_below(J, t.x.rows(), Rng(seed)),
                gain.token.value() * (1 + 1e-9));
      closest = std::max(closest, row / gain.row.value());
    }
  EXPECT_GT(closest, 0.9);
}

TEST(AttentionConstants, SayNothingOfUntiedL2) {
  const AttentionConstants constants(test::one_by_one(1, 2, 3), Kind::l2_untied,
                                     Mask::causal);
  EXPECT_FALSE(constants.over(3, 1.0));
  EXPECT_EQ(constants.name(), "");
}

}  // namespace attention_constants_test
}  // namespace lipscope
