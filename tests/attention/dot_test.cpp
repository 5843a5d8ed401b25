// Dot-product attention: the values that the theory gives by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/attention/one_by_one.h"

namespace lipscope {
namespace dot_test {

using test::column;
using test::jacobian;
using test::norm2;
using test::one_by_one;

TEST(DotProduct, IsNotLipschitz) {
  // n = 3, d = 1, A = V = 1, X = (0, t, −t): J_11 = 2t²/3 + 1/3 [Kim21]
  for (const double t : {10.0, 100.0}) {
    const Matrix J = jacobian(one_by_one(1, 1, 1), {}, column({0, t, -t}));
    EXPECT_NEAR(J(0, 0), 2 * t * t / 3 + 1.0 / 3, 1e-9 * t * t);
  }
}

TEST(DotProduct, OfOneTokenIsItsValueMap) {
  AttentionWeights w;
  w.query = gaussian(4, 4, Rng(1));
  w.key = gaussian(4, 4, Rng(2));
  w.value = gaussian(4, 4, Rng(3));
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const Matrix J = jacobian(w, {.mask = mask}, gaussian(1, 4, Rng(4)));
    EXPECT_LT((J - w.value.transpose()).norm(), 1e-14);
    EXPECT_NEAR(norm2(J), norm2(w.value), 1e-14);
  }
}

TEST(DotProduct, ReactsLikeTheRootOfItsLength) {
  // d = 2, A = diag(−.5, −.05), R = 2, n = 20, X = R(−u, u, …, u) [Castin24]
  AttentionWeights w;
  w.query = (Matrix(2, 2) << -0.5, 0, 0, -0.05).finished() * std::sqrt(2.0);
  w.key = Matrix::Identity(2, 2);
  w.value = Matrix::Identity(2, 2);
  Matrix x = Matrix::Zero(20, 2);
  x.col(0).setConstant(2.0);
  x(0, 0) = -2.0;
  EXPECT_NEAR(norm2(jacobian(w, {}, x)), 6.8825, 5e-5);
  EXPECT_NEAR(norm2(jacobian(w, {.mask = Mask::causal}, x)), 6.0977, 5e-5);
}

}  // namespace dot_test
}  // namespace lipscope
