// Tied L2 attention by its kernel.

#include "lipscope/theory/l2_kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_diagonal_apart.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace l2_kernel_test {

using test::bound_value;
using test::expect_close;
using test::norm2;
using test::two_l2_heads;

TEST(L2Kernel, BoundsWorkedByHand) {
  // one token: nothing but itself. Two: p = 0.2784645 is also the most that t
  // ln(1/t − 1) can be, and a column sums to √2 at most, or 3/2 when masked
  EXPECT_NEAR(l2_kernel(1, Mask::none).value(), 1.0, 1e-12);
  EXPECT_NEAR(l2_kernel(1, Mask::causal).value(), 1.0, 1e-12);
  const double p2 = 0.27846454276107;
  EXPECT_NEAR(l2_kernel(2, Mask::none).value(), 4 * p2 + std::pow(2, 0.25),
              1e-6);
  EXPECT_NEAR(l2_kernel(2, Mask::causal).value(), 4 * p2 + std::sqrt(1.5),
              1e-6);
  // 101: columns √101, or √202 when masked; the mean over the others 1/10, and
  // √2/10: g = 0.1 ln 9, and 0.1 √2 ln(10/√2 − 1)
  const double p = kim21_phi_inverse(101);
  expect_close(
      l2_kernel_by_columns(101, Mask::none).value(),
      std::pow(101, 0.25) + 2 * std::sqrt(p * 100 * 0.1 * std::log(9.0)));
  const double t = std::sqrt(2.0) / 10;
  expect_close(
      l2_kernel_by_columns(101, Mask::causal).value(),
      std::pow(202, 0.25) + 2 * std::sqrt(p * 100 * t * std::log(1 / t - 1)));
  expect_close(l2_kernel(101, Mask::none).value(),
               2 * p + l2_kernel_by_features(101, Mask::none).value());
  // |W_Q^h|² = 5, 10; ‖U_h‖_F = √5·5·√5 and √10·2·√13; t_h² their ratios to
  // |W_Q^h|. ‖[t W_Q]‖² = 5t₁² + 10t₂²; U = q_h ⊗ v_h o_h, o_1·o_2 = −4, so
  // that UUᵀ has the eigenvalues of [625/t₁² c; c 520/t₂²], c =
  // −4·√5·5·√10·2/(t₁t₂)
  const double s1 = 25 / std::sqrt(5.0), s2 = 2 * std::sqrt(13.0);  // t²
  const double a = 625 / s1, b = 520 / s2;
  const double c =
      4 * std::sqrt(5.0) * 5 * std::sqrt(10.0) * 2 / std::sqrt(s1 * s2);
  const double u = (a + b) / 2 + std::sqrt((a - b) * (a - b) / 4 + c * c);
  const BoundSetting q{.kind = Kind::l2, .n = 6};
  expect_close(bound_value(two_l2_heads(), q, "l2_kernel"),
               l2_kernel(6, Mask::none).value() / 2 *
                   std::sqrt(5 * s1 + 10 * s2) * std::sqrt(u));
  // without W_O the heads stand apart: ‖U_h‖ = |q_h|v_h, t_h² = v_h, so that
  // ‖[t W_Q]‖² = 5·5 + 10·2 and ‖U‖ = max(√5·√5, √10·√2)
  BoundSetting bare = q;
  bare.project = false;
  expect_close(
      bound_value(two_l2_heads(), bare, "l2_kernel"),
      l2_kernel(6, Mask::none).value() / 2 *
          std::min(std::sqrt(1025.0), std::sqrt(15.0) * std::sqrt(5.0) * 5));
}

TEST(L2Kernel, ByFeaturesAsAnotherProgramMaximisesIt) {
  // √K by numpy: the largest λ over 4,000 numbers z, the best of 80 numbers τ
  struct Case {
    Index n;
    Mask mask;
    double value;
  };
  for (const Case& c : {Case{6, Mask::none, 2.96044},
                        {64, Mask::none, 7.05631},
                        {1001, Mask::none, 17.1722},
                        {64, Mask::causal, 8.76857},
                        {1001, Mask::causal, 21.7466},
                        {501, {.window = 32}, 8.34386}}) {
    const double found = l2_kernel_by_features(c.n, c.mask).value();
    EXPECT_GT(found, c.value * (1 - 1e-4)) << c.n;
    EXPECT_LT(found, c.value * (1 + 2e-3)) << c.n;
  }
  EXPECT_EQ(l2_kernel_by_features(1, Mask::none).value(), 1.0);
}

TEST(L2Kernel, ASumOverAColumnComesNearItsLimit) {
  // Σ_i a_i E_ij(1 + τδ_ij²) against |Σ_i a_i f_i| √(1 + τ²/2), with the a_i
  // that bring the two closest: they are alike where the f_i can be combined to
  // f_j + τk_j
  const Index n = 41;
  for (const double tau : {0.5, 2.0, 6.0}) {
    Matrix kernel(n, n);
    Vector bracket(n);  // token j is at 0
    for (Index i = 0; i < n; ++i) {
      const double y = 0.2 * double(i - n / 2);
      bracket(i) = std::exp(-y * y) * (1 + tau * y * y);
      for (Index l = 0; l < n; ++l)
        kernel(i, l) = std::exp(-0.04 * double((i - l) * (i - l)));
    }
    // not more than rounding
    const Vector a =
        (kernel + 1e-9 * Matrix::Identity(n, n)).ldlt().solve(bracket);
    const double ratio = a.dot(bracket) / std::sqrt(a.dot(kernel * a)) /
                         std::sqrt(1 + tau * tau / 2);
    EXPECT_LT(ratio, 1.0) << tau;
    EXPECT_GT(ratio, 0.999) << tau;
  }
}

TEST(L2Kernel, TheProofHoldsAtEveryInput) {
  // ‖J‖ ≤ 2 max‖Cov_i‖ + √K with the K of the tokens themselves, by the dense
  // Jacobian of one head with weights 1
  const Rng rng(5);
  double nearest = 0.0;
  for (int trial = 0; trial < 400; ++trial) {
    const Index n = 2 + trial % 7, d = 1 + trial % 3;
    const double size = 0.3 + 0.4 * (trial % 6), tau = 0.5 + trial % 4;
    Matrix y = size * gaussian(n, d, rng.split(trial));
    if (trial % 5 == 0) y.topRows(n / 2) *= 1e-3;  // some at one place
    const Mask mask = trial % 2 ? Mask::causal : Mask::none;
    Vector weight(n);  // λ_i
    Matrix p = Matrix::Zero(n, n);
    double diagonal = 0.0, column = 0.0;
    for (Index i = 0; i < n; ++i) {
      const Index seen = mask.hides_later ? i + 1 : n;
      for (Index j = 0; j < seen; ++j)
        p(i, j) = std::exp(-(y.row(i) - y.row(j)).squaredNorm());
      p.row(i) /= p.row(i).sum();
      const Matrix mean = p.row(i) * y, from_mean = y.rowwise() - mean.row(0);
      const double spread =
          norm2(from_mean.transpose() * p.row(i).asDiagonal() * from_mean);
      diagonal = std::max(diagonal, 2 * spread);
      weight(i) = 1 + 4 * spread / tau;
    }
    for (Index j = 0; j < n; ++j) {
      Matrix sum = Matrix::Zero(d, d);  // its largest eigenvalue: the worst e
      for (Index i = 0; i < n; ++i) {
        const Matrix away = y.row(i) - y.row(j);
        sum += weight(i) * p(i, j) *
               (Matrix::Identity(d, d) + tau * away.transpose() * away);
      }
      column = std::max(column, norm2(sum));
    }
    AttentionWeights w;
    w.query = w.value = Matrix::Identity(d, d);
    const double root_k = std::sqrt(double(d));  // y = x k^{-1/4}
    const double reached =
        root_k * norm2(dense_jacobian(w, {.kind = Kind::l2, .mask = mask},
                                      y * std::sqrt(root_k)));
    ASSERT_LE(reached, diagonal + std::sqrt(column) + 1e-12) << trial;
    nearest = std::max(nearest, reached / (diagonal + std::sqrt(column)));
  }
  EXPECT_GT(nearest, 0.7);
}

TEST(L2Kernel, IsNearWhatIsReachedAndBelowTheOthers) {
  // m tokens at one place and m² around it, e^{-r²} = 1/m, all apart: the norm
  // of P alone is √m/3, as n^{1/4}
  const Index m = 4, around = m * m, n = m + around;
  AttentionWeights w;
  w.query = w.value = Matrix::Identity(around, around);
  // |q − q'|²/√k: k^{1/4} r at which it is r²
  const double r = std::sqrt(std::log(double(m))) * std::pow(around, 0.25);
  Matrix x = Matrix::Zero(n, around);
  x.bottomRows(around) = r * Matrix::Identity(around, around);
  const double root_k = std::sqrt(double(around));
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const double reached =
        root_k * norm2(dense_jacobian(w, {.kind = Kind::l2, .mask = mask}, x));
    const double above =
        root_k *
        bound_value(w, {.kind = Kind::l2, .mask = mask, .n = n}, "l2_kernel");
    EXPECT_LT(reached, above);
    EXPECT_GT(reached, 0.1 * above);
  }
  for (const Index tokens : {1, 2, 3, 10, 100, 10000})
    for (const Mask mask : {Mask::none, Mask::causal})
      EXPECT_LE(
          l2_kernel(tokens, mask).value(),
          l2_diagonal_apart(kim21_phi_inverse(tokens), tokens, 1).value() *
              (1 + 1e-12))
          << tokens;
}

}  // namespace l2_kernel_test
}  // namespace lipscope
