// Tied L2 attention in the token norm.

#include "lipscope/theory/l2_diagonal_apart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/l2.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace l2_diagonal_apart_test {

using test::bound_value;
using test::tied;

TEST(L2DiagonalApart, IsNearlyReachedInOneDimension) {
  // H = d = 1, weights 1: the token norm is the inf-norm, and the closed form
  // of theory/kim21 reaches 4p − 1 + 2/(p + 1): token 0, half of the others at
  // each of ±√(p + 1)
  const Index n = 101;
  const double p = kim21_phi_inverse(n);
  Matrix x(n, 1);
  for (Index i = 0; i < n; ++i)
    x(i, 0) = i == 0 ? 0.0 : (i % 2 == 0 ? 1 : -1) * std::sqrt(p + 1);
  const double reached = test::token_norm_below(
      dense_jacobian(tied(1, 1), {.kind = Kind::l2}, x), n, Rng(3));
  const double bound =
      bound_value(tied(1, 1), {.kind = Kind::l2, .n = n}, "l2_row_sums");
  EXPECT_NEAR(reached, 4 * p - 1 + 2 / (p + 1), 1e-9);
  EXPECT_LE(reached, bound);
  EXPECT_GT(reached, 0.85 * bound);
}

}  // namespace l2_diagonal_apart_test
}  // namespace lipscope
