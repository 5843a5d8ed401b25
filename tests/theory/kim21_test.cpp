// The bounds of [Kim21], and the form of them that is false.

#include "lipscope/theory/kim21.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace kim21_test {

using test::bound_value;
using test::expect_close;
using test::norm2;
using test::tied;
using test::two_l2_heads;

TEST(Kim21, PhiInverseHasItsTestValues) {
  EXPECT_NEAR(kim21_phi_inverse(2), 0.278465, 1e-6);
  EXPECT_NEAR(kim21_phi_inverse(1001), 4.42132, 1e-5);
  EXPECT_EQ(kim21_phi_inverse(1), 0.0);
  for (const Index n : {2, 7, 100, 100000}) {
    const double p = kim21_phi_inverse(n);
    EXPECT_NEAR(p * std::exp(p + 1), static_cast<double>(n - 1), 1e-9 * n);
    EXPECT_GE(p * std::exp(p + 1), static_cast<double>(n - 1) * (1 - 1e-15));
  }
}

TEST(Kim21, InfNormIsTheTableOfTheory) {
  const struct {
    Index n;
    double above;
  } rows[] = {{3, 2.8522},  {5, 3.8713},    {9, 5.1605},    {21, 7.2182},
              {51, 9.5906}, {101, 11.5437}, {501, 16.4525}, {1001, 18.6853}};
  for (const auto& row : rows)
    EXPECT_NEAR(
        bound_value(tied(1, 1), {.kind = Kind::l2, .n = row.n}, "kim21_inf"),
        row.above, 5.1e-5);
}

TEST(Kim21, BoundsOfALayerWorkedByHand) {
  const double p = kim21_phi_inverse(6);
  const BoundSetting q{.kind = Kind::l2, .n = 6};
  // ‖W_Oᵀ‖_inf: largest column sum max(1, 3, 4) = 4. ‖W_Q^h‖_inf = 3, 4 (row),
  // ‖W_Q^hᵀ‖_inf = 2, 3 (largest entry); max product 12; max ‖W_V^hᵀ‖ = 5
  expect_close(bound_value(two_l2_heads(), q, "kim21_inf"),
               (4 * p + 0.5) * 4 * 12 * 5);
  // ‖W_Q^h‖² = 5, 10; Σ‖W_Q‖⁴‖W_V‖² = 25·25 + 100·4; W_OW_Oᵀ = [5 −4; −4 13]:
  // λ = 9 + √(16 + 16)
  const double weights =
      std::sqrt(625.0 + 400.0) * std::sqrt(9 + std::sqrt(32.0));
  expect_close(bound_value(two_l2_heads(), q, "kim21_two"),
               std::sqrt(6.0) / 2 * (4 * p + 1) * weights);
  expect_close(bound_value(two_l2_heads(), q, "l2_diagonal_apart"),
               0.5 * (2 * p + (1 + 2 * p) * std::sqrt(6.0)) * weights);
  expect_close(bound_value(two_l2_heads(), q, "l2_row_sums"),
               0.5 * (4 * p + 1) * weights);
  // Σ‖W_Q^h‖²‖W_V^hW_O^h‖ is 5·5√5 + 10·2√13 = 128.01, above 122.57; with the
  // second head's values 2 → 0.1 and its output ten times as large it is
  // 55.9 + 36.1 = 92.0, below √(625 + 1)·√1301.2 = 902.5
  AttentionWeights uneven = two_l2_heads();
  uneven.value(0, 1) = 0.1;
  uneven.output.row(1) *= 10;
  expect_close(bound_value(uneven, q, "l2_row_sums"),
               0.5 * (4 * p + 1) * (25 * std::sqrt(5.0) + std::sqrt(1300.0)));
  BoundSetting bare = q;
  bare.project = false;
  expect_close(bound_value(two_l2_heads(), bare, "l2_row_sums"),
               0.5 * (4 * p + 1) * std::sqrt(1025.0));
  expect_close(bound_value(two_l2_heads(), bare, "kim21_inf"),
               (4 * p + 0.5) * 12 * 5);
  bare.heads = {0};
  expect_close(bound_value(two_l2_heads(), bare, "kim21_two"),
               std::sqrt(6.0) / 2 * (4 * p + 1) * 5 * 5);
}

TEST(FalseForms, L2WithTheSquareOfTheQueryNorm) {
  // H = d = 1, n = 2, W_Q = 4: 24.1 is reached; with ‖W_Q‖² in place of ‖W_Q‖⁴
  // the bound would say √2(4p + 1)·4 = 11.96
  const double p = kim21_phi_inverse(2);
  const double quoted = std::sqrt(2.0) * (4 * p + 1) * 4;
  EXPECT_NEAR(quoted, 11.96, 0.005);
  double reached = 0.0;
  for (double t = 0.001; t < 2; t += 0.001) {
    const Matrix x = (Matrix(2, 1) << 0, t).finished();
    reached = std::max(
        reached, norm2(dense_jacobian(tied(4, 1), {.kind = Kind::l2}, x)));
  }
  EXPECT_GT(reached, 24.1);
  EXPECT_LT(reached, bound_value(tied(4, 1), {.kind = Kind::l2, .n = 2},
                                 "l2_diagonal_apart"));
  const double kernel =
      bound_value(tied(4, 1), {.kind = Kind::l2, .n = 2}, "l2_kernel");
  EXPECT_LT(reached, kernel);
  EXPECT_GT(reached, 0.6 * kernel);
}

}  // namespace kim21_test
}  // namespace lipscope
