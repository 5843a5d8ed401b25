#include "lipscope/theory/centred_slopes.h"

#include <gtest/gtest.h>

#include "lipscope/theory/mlp_bound.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace centred_slopes_test {

constexpr Activation activations[] = {Activation::gelu, Activation::gelu_tanh,
                                      Activation::relu, Activation::silu};

MlpWeights scalar_mlp(double up, double down, Activation activation) {
  return {.up = test::scalar(up),
          .down = test::scalar(down),
          .activation = activation};
}

TEST(CentredSlopes, IsTheFormulaWorkedByHand) {
  // W₁W₂ = −1: |1 − ½| + ½, where 1 + 1 is the other bound
  EXPECT_NEAR(
      centred_slopes(scalar_mlp(2, -0.5, Activation::relu), 1, 1).value(), 1.0,
      1e-12);
  // |½ − ¼| + ½·0.6290
  EXPECT_NEAR(
      centred_slopes(scalar_mlp(2, -0.5, Activation::gelu), 0.5, 0.5).value(),
      0.25 + 0.3145, 1e-12);
  // W₁W₂ = 3, f alone: 1.5 + 0.5999·3
  EXPECT_NEAR(
      centred_slopes(scalar_mlp(2, 1.5, Activation::silu), 0, 1).value(),
      1.5 + 0.5999 * 3, 1e-12);
  // two features: W₁W₂ = diag(−1, 0), ‖W₁‖‖W₂‖ = 2·1; ‖I/4 + ¾·½W₁W₂‖ =
  // max(1/8, 1/4), and ¾·½·2
  const MlpWeights w{.up = (Matrix(2, 2) << 1, 0, 0, 2).finished(),
                     .down = (Matrix(2, 2) << -1, 0, 0, 0).finished(),
                     .activation = Activation::relu};
  EXPECT_NEAR(centred_slopes(w, 0.25, 0.75).value(), 0.25 + 0.75, 1e-12);
}

TEST(CentredSlopes, TakesSlopesFromTheirInterval) {
  Matrix x(1, 200001);
  for (Index i = 0; i < x.size(); ++i) x(0, i) = double(i - 100000) / 5000;
  for (const Activation a : activations) {
    const Matrix slopes = activation_slopes(a, x, 1);
    const double most = activation_slope(a);
    EXPECT_LE(slopes.maxCoeff(), most) << name_of(a);
    EXPECT_GE(slopes.minCoeff(), 1.0 - most) << name_of(a);
    // both ends are the ends
    EXPECT_NEAR(slopes.maxCoeff(), most, 2e-4) << name_of(a);
    EXPECT_NEAR(slopes.minCoeff(), 1.0 - most, 2e-4) << name_of(a);
    // act'(x) + act'(−x) = 1
    if (a != Activation::relu) {
      EXPECT_LT((slopes.array() + slopes.rowwise().reverse().array() - 1.0)
                    .abs()
                    .maxCoeff(),
                1e-14)
          << name_of(a);
    }
  }
}

TEST(CentredSlopes, IsNearlyReachedWhereTheMlpTurnsBack) {
  const Mlp<double> f(scalar_mlp(2, -0.5, Activation::gelu), 1);
  double reached = 0.0;
  for (double x = -2; x < 2; x += 1e-3)
    reached = std::max(
        reached,
        std::abs(0.5 + 0.5 * materialize(*f.linearize(test::scalar(x)))(0, 0)));
  EXPECT_LE(reached, 0.5645);
  EXPECT_GT(reached, 0.9999 * 0.5645);
}

TEST(CentredSlopes, IsNeverBelowWhatSlopesReach) {
  double nearest = 0.0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Rng rng(seed);
    const Activation a = activations[seed % 4];
    const double carry = 0.5 * double(seed % 3), share = 1.5 - carry;
    const Index m = 1 + Index(seed % 4);
    const MlpWeights w{.up = gaussian(3, m, rng.split(0)),
                       .down = gaussian(m, 3, rng.split(1)),
                       .activation = a};
    const double bound = centred_slopes(w, carry, share).value();
    const double most = activation_slope(a);
    for (int corner = 0; corner < 1 << m; ++corner) {
      Vector slopes(m);
      for (Index j = 0; j < m; ++j)
        slopes[j] = (corner >> j & 1) ? most : 1.0 - most;
      const Matrix j = carry * Matrix::Identity(3, 3) +
                       share * (w.up * slopes.asDiagonal() * w.down);
      EXPECT_LE(test::norm2(j), bound * (1 + 1e-12)) << "seed " << seed;
      nearest = std::max(nearest, test::norm2(j) / bound);
    }
  }
  EXPECT_GT(nearest, 0.99);
}

TEST(CentredSlopes, RefusesWhatHasNoSlopesOfOneFeature) {
  MlpWeights w{.up = Matrix::Ones(2, 2), .down = Matrix::Ones(2, 2)};
  EXPECT_THROW(centred_slopes(w, -1, 1), std::invalid_argument);
  w.activation = Activation::max_min;
  EXPECT_THROW(centred_slopes(w, 1, 1), std::invalid_argument);
  w.activation = Activation::silu;
  w.gate = w.up;
  EXPECT_THROW(centred_slopes(w, 1, 1), std::invalid_argument);
}

}  // namespace centred_slopes_test
}  // namespace lipscope
