// What every kind of attention must be, whichever it is: whoever adds one to
// the tables and forgets a part of it fails here.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/operators/check.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/unbounded.h"
#include "tests/support/layers.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace every_kind_test {

class EveryKind : public testing::TestWithParam<Kind> {
 protected:
  const AttentionKind& kind = kind_of(GetParam());
  const test::LayerCase layer{.kind = GetParam(), .heads = 3, .biases = true};
  const AttentionWeights weights = test::random_layer(layer);
  const AttentionOptions options = test::options_of(layer);
  const MultiHeadAttention<double> f{weights, options};
  const Matrix x = test::random_tokens(layer);
};

TEST_P(EveryKind, HasItsEntryInBothTables) {
  EXPECT_EQ(kind.kind, GetParam());
  EXPECT_EQ(name_of(GetParam()), kind.name);
  EXPECT_EQ(kind_bounds(GetParam()).kind, GetParam());
  EXPECT_TRUE(kind.dense);
}

TEST_P(EveryKind, HasTheDerivativeOfItsValues) {
  const DerivativeCheck check = check_derivative(f, x, Rng(1));
  EXPECT_LT(check.error, 1e-9) << "step " << check.step;
  EXPECT_GT(check.magnitude, 1e-3);
}

TEST_P(EveryKind, HasTheAdjointOfItsJacobian) {
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(1)), 1e-14);
}

TEST_P(EveryKind, HasTheJacobianOfItsClosedForm) {
  const Matrix exact = dense_jacobian(weights, options, x);
  EXPECT_LT((materialize(*f.linearize(x)) - exact).norm(),
            1e-13 * exact.norm());
  const MultiHeadAttention<float> single(weights, options);
  const Matrix rounded =
      materialize(*single.linearize(x.cast<float>())).cast<double>();
  EXPECT_LT((rounded - exact).norm(), 1e-4 * exact.norm());
}

// the reverse pass over J v, against differences of the closed form
TEST_P(EveryKind, HasTheGradientOfItsJacobian) {
  const Vector v = random_direction(x.size(), Rng(2));
  const Vector u = random_direction(f.linearize(x)->rows(), Rng(3));
  const Matrix dx = gaussian(x.rows(), x.cols(), Rng(4));
  const auto at = [&](double t) {
    return u.dot(dense_jacobian(weights, options, x + t * dx) * v);
  };
  const double h = 1e-4;
  const double quotient =
      (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  const Matrix gradient = f.tangent_gradient(x, v, u);
  EXPECT_NEAR(gradient.cwiseProduct(dx).sum(), quotient,
              1e-8 * gradient.norm() * dx.norm());
}

// With W_V = 0 the values are their bias alone. What rows of shares make of it
// is the bias itself.
TEST_P(EveryKind, SaysRightlyWhetherItsWeightsAreShares) {
  AttentionWeights constant = weights;
  constant.value.setZero();
  const MultiHeadAttention<double> core(constant,
                                        {.kind = GetParam(), .project = false});
  const Matrix y = core(x);
  const auto bias = weights.value_bias.transpose().replicate(x.rows(), 1);
  EXPECT_EQ((y - bias).norm() < 1e-13 * bias.norm(),
            kind.adds_value_bias_last());
  EXPECT_EQ((y.rowwise() - y.row(0)).norm() < 1e-13 * y.norm(), kind.shares());
}

TEST_P(EveryKind, IsRefusedOrRotatedAsItSays) {
  AttentionOptions rotated = options;
  rotated.rope = Rotary{.theta = 50.0};
  if (!kind.no_rope.empty()) {
    EXPECT_THROW(MultiHeadAttention<double>(weights, rotated),
                 std::invalid_argument);
    return;
  }
  const MultiHeadAttention<double> turned(weights, rotated);
  const Matrix exact = dense_jacobian(weights, rotated, x);
  EXPECT_LT((materialize(*turned.linearize(x)) - exact).norm(),
            1e-13 * exact.norm());
}

TEST_P(EveryKind, IsNeverAboveItsBounds) {
  const KindBounds& proved = kind_bounds(GetParam());
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const test::Trial t = test::trial(GetParam(), seed);
    const double R = test::radius(t.x);
    const Matrix J = test::jacobian(t);
    const std::vector<Bound> all = bounds(t.weights, test::setting_of(t, R));
    for (const Bound& b : all) {
      EXPECT_LE(test::measured(J, b.norm, t.x.rows(), Rng(seed)),
                b.value * (1 + 1e-9))
          << b.name << ", trial " << seed;
      EXPECT_EQ(b.scope.is_everywhere(), !proved.over_ball) << b.name;
    }
    EXPECT_EQ(best_bound(all, Norm::two).has_value(), proved.add != nullptr);
    EXPECT_EQ(best_bound(all, Norm::token).has_value(), proved.token);
    EXPECT_EQ(best_bound(all, Norm::inf).has_value(), proved.inf);
  }
}

// A bound over all inputs is one of Lipschitz kinds alone; the others have
// inputs at which they grow.
TEST_P(EveryKind, IsLipschitzOrGrows) {
  EXPECT_EQ(unbounded(GetParam()), !kind.lipschitz);
  if (kind.lipschitz) {
    EXPECT_FALSE(kind_bounds(GetParam()).over_ball);
    return;
  }
  AttentionOptions one = options;
  one.heads = {0};
  const auto norm_at = [&](double t) {
    return test::norm2(dense_jacobian(
        weights, one, unbounded_witness(head(weights, 0), GetParam(), 4, t)));
  };
  EXPECT_GT(norm_at(3000), 60 * norm_at(300));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, testing::ValuesIn(all_kinds),
                         [](const auto& tried) {
                           std::string name = name_of(tried.param);
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(Kinds, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Kind kind : all_kinds) names.insert(name_of(kind));
  EXPECT_EQ(names.size(), std::size(all_kinds));
}

}  // namespace every_kind_test
}  // namespace lipscope
