#include "lipscope/theory/unbounded.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/theory/regime.h"
#include "tests/support/layers.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace unbounded_test {

TEST(UnboundedWitness, IsKim21sInOneDimension) {
  // A = V = 1, tokens t, −t and 0: the last answers to itself with 2t²/3 + 1/3
  const AttentionWeights one = test::one_by_one(1, 1, 1);
  for (const double t : {10.0, 100.0}) {
    const Matrix x = unbounded_witness(head(one, 0), Kind::dot, 3, t);
    EXPECT_NEAR(std::abs(x(0, 0)), t, 1e-12);
    EXPECT_NEAR(x(1, 0), -x(0, 0), 1e-12);
    EXPECT_EQ(x(2, 0), 0.0);
    for (const Mask mask : {Mask::none, Mask::causal})
      EXPECT_NEAR(dense_jacobian(one, {.mask = mask}, x)(2, 2),
                  2 * t * t / 3 + 1.0 / 3, 1e-9 * t * t);
  }
  // untied, W_Q = 1, W_K = −1, s = 30: x₀ = 30, the others −30 ± 30
  const AttentionWeights untied = test::one_by_one(1, -1, 1);
  const Matrix x = unbounded_witness(head(untied, 0), Kind::l2_untied, 3, 30);
  EXPECT_NEAR(std::abs(x(2, 0)), 30, 1e-12);
  const double norm =
      test::norm2(dense_jacobian(untied, {.kind = Kind::l2_untied}, x));
  EXPECT_NEAR(norm, 2204, 1);
}

TEST(UnboundedWitness, GrowsWithTheSquareOfTForEveryLayer) {
  for (const test::LayerCase& c : test::all_layer_cases()) {
    if (!unbounded(c.kind) || c.heads > 2) continue;
    const AttentionWeights w = test::random_layer(c);
    for (Index h = 0; h < c.heads; ++h) {
      const HeadWeights one = head(w, h);
      AttentionOptions options = test::options_of(c);
      options.heads = {h};
      const auto norm_at = [&](double t) {
        return test::norm2(
            dense_jacobian(w, options, unbounded_witness(one, c.kind, 4, t)));
      };
      const double first = norm_at(300), second = norm_at(3000);
      EXPECT_GT(second, 60 * first) << c.name() << " head " << h;
      EXPECT_GT(second, 0.2 * 9e6 * unbounded_rate(one) /
                            (c.kind == Kind::sigmoid ? 4 : 1))
          << c.name() << " head " << h;
    }
  }
}

TEST(UnboundedWitness, RefusesWhatHasNone) {
  const HeadWeights one = head(test::one_by_one(1, 1, 1), 0);
  EXPECT_THROW(unbounded_witness(one, Kind::l2, 3, 1), std::invalid_argument);
  EXPECT_THROW(unbounded_witness(one, Kind::dot, 2, 1), std::invalid_argument);
  EXPECT_THROW(unbounded_witness(one, Kind::dot, 3, 0), std::invalid_argument);
  EXPECT_THROW(unbounded_witness(one, Kind::l2_untied, 3, 1),
               std::invalid_argument);  // tied after all
  for (const auto& zero : {test::one_by_one(0, 1, 1), test::one_by_one(1, 0, 1),
                           test::one_by_one(1, 1, 0)})
    EXPECT_THROW(unbounded_witness(head(zero, 0), Kind::dot, 3, 1),
                 std::invalid_argument);
}

TEST(Regime, FollowsTheColumnSums) {
  // a = s = 4: e^{2s} = 2981
  const auto regime = [](Index n, Mask mask) {
    const auto at = [&](Index tokens) {
      std::vector<Bound> all = bounds(test::one_by_one(1, 1, 1),
                                      {.mask = mask, .n = tokens, .radius = 2});
      std::erase_if(all,
                    [](const Bound& b) { return !speaks_of(b, Norm::two); });
      return all;
    };
    return regime_of(at(n), at(2 * n));
  };
  EXPECT_EQ(regime(8, Mask::none).name, "sqrt-n");
  // 4 + 5√(10⁴/(1 + 9999/2981)) = 243.6, and 258.7 at twice the length
  EXPECT_EQ(regime(10000, Mask::none).name, "saturated");
  EXPECT_NEAR(regime(10000, Mask::none).exponent, std::log2(258.7 / 243.6),
              1e-3);
  EXPECT_EQ(regime(Index{1} << 24, Mask::none).name, "mean-field");
  EXPECT_EQ(regime(8, Mask::causal).name, "sqrt-n");
  EXPECT_EQ(regime(Index{1} << 20, Mask::causal).name, "saturated");
}

}  // namespace unbounded_test
}  // namespace lipscope
