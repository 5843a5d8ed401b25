#include "lipscope/theory/norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/core/symmetric_eigen.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {
namespace norms_test {

TEST(Magnitude, RoundsUpAndGoesOnBeyondDouble) {
  EXPECT_GT((Magnitude(0.1) + 0.2).value(), 0.1 + 0.2);
  EXPECT_GT((Magnitude(0.1) * 3.0).value(), 0.1 * 3.0);
  EXPECT_GE((Magnitude(1e-300) * 1e-300).value(), 0x1p-1074);
  EXPECT_EQ((Magnitude(0.0) * 5.0).value(), 0.0);

  // e^1000 · 10^300 + e^1000: 1000/ln 10 + 300 = 734.2944819…
  const Magnitude big = exp_of(1000) * 1e300 + exp_of(1000);
  EXPECT_TRUE(std::isinf(big.value()));
  EXPECT_NEAR(big.log10(), 734.29448190325182, 1e-10);
  EXPECT_GE(big.log10(), 734.29448190325182);
  EXPECT_NEAR(root(big).log10(), 734.29448190325182 / 2, 1e-10);
  EXPECT_TRUE(exp_of(999) < exp_of(1000));
  EXPECT_EQ(smaller(exp_of(1000), exp_of(999)).log10(), exp_of(999).log10());
  EXPECT_NEAR((Magnitude(2.0) + 3.0).log10(), std::log10(5.0), 1e-14);
  EXPECT_THROW(Magnitude(-1.0), std::invalid_argument);
  EXPECT_THROW(Magnitude(std::nan("")), std::invalid_argument);
}

TEST(WeightNorm, IsAboveAndTight) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Index m = 1 + seed * 7 % 90, n = 1 + seed * 13 % 70;
    const Matrix w =
        std::pow(10.0, 40.0 * std::sin(seed)) * gaussian(m, n, Rng(seed));
    const DenseNorm norm = dense_norm(w);
    const double above_it = weight_norm_above(w);
    EXPECT_GE(above_it, norm.value * (1 - 1e-14)) << seed;
    EXPECT_LE(above_it, norm.value * (1 + 2e-3)) << seed;
  }
  // 3, 4, 12 down the diagonal; and a double top value
  EXPECT_NEAR(weight_norm_above(Vector{{3.0, 4.0, 12.0}}.asDiagonal()), 12.0,
              1e-11);
  EXPECT_NEAR(weight_norm_above(Matrix::Identity(200, 200)), 1.0, 1e-9);
  EXPECT_EQ(weight_norm_above(Matrix::Zero(3, 4)), 0.0);
  EXPECT_THROW(weight_norm_above(Matrix::Constant(2, 2, NAN)),
               std::invalid_argument);
}

TEST(WeightNorm, ACholeskyThatFailsRaisesTheGuess) {
  // the exact value is never undercut, though Lanczos ends below it: a top
  // eigenvalue that is hardly apart from hundreds of others
  Vector spectrum = Vector::LinSpaced(400, 0.99, 1.0);
  const Matrix w = spectrum.asDiagonal();
  EXPECT_GE(weight_norm_above(w), 1.0);
  EXPECT_LE(weight_norm_above(w), 1.006);
}

TEST(GuessedNorm, IsTheGuessWhereThatIsProved) {
  // many values close together, in both orientations and far from one
  for (const double size : {1e-60, 0.3, 1.0, 1e60})
    for (const auto& [m, n] : {std::pair<Index, Index>{90, 90}, {90, 200}}) {
      const Matrix u = symmetric_eigen(gaussian(m, m, Rng(1)) +
                                       gaussian(m, m, Rng(1)).transpose())
                           .vectors;
      Matrix w = Matrix::Zero(m, n);
      w.leftCols(m) = size * Vector::LinSpaced(m, 0.9, 1.0).asDiagonal() * u;
      for (const double above_it : {1e-9, 1e-5, 0.1}) {
        const double guess = size * (1 + above_it);
        EXPECT_EQ(guessed_norm_above(w, guess), guess);
        EXPECT_EQ(guessed_norm_above(w.transpose(), guess), guess);
      }
      // below the norm it is never believed
      for (const double below : {1e-9, 1e-5, 0.1, 0.999}) {
        const double guess = size * (1 - below);
        EXPECT_GE(guessed_norm_above(w, guess), size * (1 - 1e-13));
        EXPECT_GE(guessed_norm_above(w.transpose(), guess), size * (1 - 1e-13));
      }
    }
  EXPECT_EQ(guessed_norm_above(Matrix::Zero(3, 4), 0.5), 0.5);
  EXPECT_NEAR(guessed_norm_above(Matrix::Constant(1, 1, -2.0), 1.0), 2.0,
              1e-12);
  EXPECT_EQ(guessed_norm_above(Matrix(0, 4), 0.5), 0.0);
  EXPECT_THROW(guessed_norm_above(Matrix::Identity(2, 2), 0.0),
               std::invalid_argument);
  EXPECT_THROW(guessed_norm_above(Matrix::Constant(2, 2, NAN), 1.0),
               std::invalid_argument);
}

TEST(EigenvalueAbove, IsTheLargestWhateverIsBelowZero) {
  // beyond 24 rows the guess is Lanczos', and it must keep the sign: the
  // eigenvalue of largest absolute value is −5
  for (const Index n : {20, 40, 120}) {
    Vector values = Vector::LinSpaced(n, -1.0, 1.0);
    values[0] = -5.0;
    values[n - 1] = 2.0;
    const Matrix a = gaussian(n, n, Rng(n));
    const Matrix q = symmetric_eigen(a + a.transpose()).vectors;
    const Matrix g = q * values.asDiagonal() * q.transpose();
    const double found = eigenvalue_above((g + g.transpose()) / 2.0);
    EXPECT_GE(found, 2.0 * (1 - 1e-14)) << n;
    EXPECT_LE(found, 2.0 * (1 + 1e-10)) << n;
  }
}

TEST(PowerNorm, IsAboveAndNotFar) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Index m = 1 + seed * 7 % 50, n = 1 + seed * 13 % 40;
    const Matrix w =
        std::pow(10.0, 40.0 * std::sin(seed)) * gaussian(m, n, Rng(seed));
    const double exact = dense_norm(w).value, found = power_norm_above(w);
    EXPECT_GE(found, exact * (1 - 1e-14)) << seed;
    EXPECT_LE(found, exact * std::pow(std::min(m, n), 0.125) * (1 + 1e-12))
        << seed;
  }
  // (Σσ⁸)^{1/8}
  EXPECT_NEAR(power_norm_above(Vector{{1.0, 2.0}}.asDiagonal()),
              std::pow(257.0, 0.125), 1e-12);
  // SᵀS of [2 1; 1 2] is [5 4; 4 5]: √(82^{1/2})
  EXPECT_NEAR(power_eigenvalue_above(Matrix{{2.0, 1.0}, {1.0, 2.0}}, 0.5),
              std::pow(82.0, 0.25) + 0.5, 1e-12);
}

TEST(ProductNorm, IsAboveAndTight) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Index k = 1 + seed % 9, m = 1 + seed * 5 % 40, n = 1 + seed * 3 % 30;
    Matrix x = gaussian(m, k, Rng(seed)), y = gaussian(n, k, Rng(seed + 99));
    if (seed % 3 == 0) x.col(0).setZero();  // rank deficient
    const double exact = dense_norm(x * y.transpose()).value;
    EXPECT_GE(product_norm_above(x, y), exact * (1 - 1e-14)) << seed;
    EXPECT_LE(product_norm_above(x, y), exact + 1e-6 * x.norm() * y.norm());
  }
  EXPECT_NEAR(product_norm_above(Matrix::Constant(1, 1, 2e200),
                                 Matrix::Constant(1, 1, 3e-190)),
              6e10, 1e-2);
}

TEST(NonnegativeNorm, IsAboveAndTight) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Index m = 1 + seed % 30, n = 1 + seed * 7 % 25;
    Matrix a = gaussian(m, n, Rng(seed)).cwiseAbs();
    if (seed % 4 == 1) a.triangularView<Eigen::StrictlyUpper>().setZero();
    if (seed % 4 == 2) a.col(0).setZero();
    if (a.norm() == 0.0) continue;
    const double exact = dense_norm(a).value;
    EXPECT_GE(nonnegative_norm_above(a), exact * (1 - 1e-14)) << seed;
    EXPECT_LE(nonnegative_norm_above(a), exact * 1.05) << seed;
  }
  // all ones [n×m]: √(n m)
  EXPECT_NEAR(nonnegative_norm_above(Matrix::Ones(4, 9)), 6.0, 1e-11);
  EXPECT_THROW(nonnegative_norm_above(Matrix::Constant(1, 1, -1.0)),
               std::invalid_argument);
}

TEST(FactorAbove, DominatesTheGramMatrix) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix w =
        gaussian(3 + seed % 5, 6, Rng(seed));  // some rank deficient
    const Gram gram = gram_of_columns(w);
    const Matrix f = factor_above(gram);
    // a random direction is never longer through W than through F
    for (int s = 0; s < 20; ++s) {
      const Vector v = random_direction(6, Rng(seed).split(s));
      EXPECT_LE((w * v).norm(), (f.transpose() * v).norm() * (1 + 1e-14));
    }
    EXPECT_LT((f * f.transpose() - gram.g).norm(), 1e-11 * gram.g.norm());
  }
}

TEST(RowSum, IsTheInfNorm) {
  const Matrix w = (Matrix(2, 2) << 1, -2, 3, 0.5).finished();
  EXPECT_NEAR(row_sum_above(w), 3.5, 1e-14);
  EXPECT_NEAR(row_sum_above(w.transpose()), 4.0, 1e-14);
  EXPECT_NEAR(length_above(Vector{{3.0, -4.0}}), 5.0, 1e-14);
}

}  // namespace norms_test
}  // namespace lipscope
