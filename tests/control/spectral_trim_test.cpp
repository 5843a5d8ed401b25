#include "lipscope/control/spectral_trim.h"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"

namespace lipscope {
namespace spectral_trim_test {

Matrix orthogonal(Index n, Rng rng) {
  return Eigen::HouseholderQR<Matrix>(gaussian(n, n, rng)).householderQ();
}

// singular values 4, 3.6 and 1 at s = 4: they lose ε, 0.9³² ε and 4⁻³² ε
TEST(SpectralTrim, TakesItsShareOffTheLeadingSingularValues) {
  const Matrix u = orthogonal(5, Rng(1)), v = orthogonal(3, Rng(2));
  const Vector sigma = (Vector(3) << 4, 3.6, 1).finished();
  const auto with = [&](const Vector& s) -> Matrix {
    return u.leftCols(3) * s.asDiagonal() * v.transpose();
  };
  const double share = 0.02;
  Vector trimmed = sigma;
  for (double& s : trimmed) s *= 1 - share * std::pow(s / 4, 32);
  EXPECT_NEAR(trimmed[0], 3.92, 1e-12);
  EXPECT_NEAR(trimmed[1], 3.6 * (1 - 0.02 * 0.034337), 1e-6);
  const Matrix w = with(sigma), expected = with(trimmed);
  EXPECT_LT((spectral_trim(w, 4.0, share) - expected).norm(), 1e-12);
  // and of a wide matrix
  const Matrix wide = w.transpose();
  EXPECT_LT(
      (spectral_trim(wide, 4.0, share) - Matrix(expected.transpose())).norm(),
      1e-12);
  const MatrixOf<float> f = w.cast<float>();
  EXPECT_LT((spectral_trim(f, 4.0, share).cast<double>() - expected).norm(),
            1e-5);
}

TEST(SpectralTrim, RefusesMoreThanKeepsTheOrder) {
  EXPECT_THROW(spectral_trim(Matrix(Matrix::Identity(2, 2)), 1.0, 0.04),
               std::invalid_argument);
  EXPECT_THROW(spectral_trim(Matrix(Matrix::Identity(2, 2)), 0.0, 0.01),
               std::invalid_argument);
}

}  // namespace spectral_trim_test
}  // namespace lipscope
