#include "lipscope/spectral/lanczos.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/core/symmetric_eigen.h"

namespace lipscope {
namespace lanczos_test {

// Q diag(values) Qᵀ
Matrix with_eigenvalues(const Vector& values, std::uint64_t seed) {
  const Index n = values.size();
  const Matrix a = gaussian(n, n, Rng(seed));
  const Matrix q = symmetric_eigen(a + a.transpose()).vectors;
  return q * values.asDiagonal() * q.transpose();
}

TEST(LargestEigenvalue, IsFoundWhereItStandsApart) {
  Vector values = Vector::LinSpaced(60, 0.0, 1.0);
  values[59] = 3.0;
  const EigenvalueEstimate found =
      largest_eigenvalue(with_eigenvalues(values, 1), 18);
  EXPECT_NEAR(found.value, 3.0, 1e-12);
  EXPECT_LT(found.residual, 1e-6);
}

TEST(LargestEigenvalue, IsTheLargestAndNotTheLargestAbsoluteValue) {
  Vector values = Vector::LinSpaced(40, -1.0, 0.5);
  values[0] = -7.0;
  values[1] = 2.0;
  const Matrix g = with_eigenvalues(values, 2);
  EXPECT_NEAR(largest_eigenvalue(g, 25).value, 2.0, 1e-12);
  EXPECT_NEAR(largest_eigenvalue(-g, 25).value, 7.0, 1e-12);
}

TEST(LargestEigenvalue, ComesFromBelowAndGrowsWithTheSteps) {
  const Matrix g = with_eigenvalues(Vector::LinSpaced(80, 0.0, 1.0), 3);
  double before = 0.0;
  for (const Index steps : {1, 2, 4, 8, 16, 32}) {
    const EigenvalueEstimate found = largest_eigenvalue(g, steps);
    EXPECT_GE(found.value, before * (1 - 1e-14)) << steps;
    EXPECT_LE(found.value, 1.0 + 1e-14) << steps;
    before = found.value;
  }
  EXPECT_GT(before, 0.999);
}

TEST(LargestEigenvalue, EndsWhereItsSpaceEnds) {
  // after one product nothing new is left: a multiple of the identity
  const EigenvalueEstimate same =
      largest_eigenvalue(2.5 * Matrix::Identity(30, 30), 18);
  EXPECT_NEAR(same.value, 2.5, 1e-14);
  EXPECT_LT(same.residual, 1e-14);
  const EigenvalueEstimate zero = largest_eigenvalue(Matrix::Zero(30, 30), 18);
  EXPECT_EQ(zero.value, 0.0);
  EXPECT_EQ(zero.residual, 0.0);
}

TEST(LargestEigenvalue, SaysHowNearlyItsVectorIsAnEigenvector) {
  // diag(3, 1), one step: v is the start, |Gv − ϱv|/ϱ by hand
  const Matrix g = Vector{{3.0, 1.0}}.asDiagonal();
  const Vector v = random_direction(2, Rng(1));
  const double quotient = v.dot(g * v);
  const EigenvalueEstimate found = largest_eigenvalue(g, 1);
  EXPECT_NEAR(found.value, quotient, 1e-15);
  EXPECT_NEAR(found.residual, (g * v - quotient * v).norm() / quotient, 1e-14);
}

TEST(LargestEigenvalue, RefusesWhatIsNoSymmetricMatrix) {
  EXPECT_THROW(largest_eigenvalue(Matrix::Zero(2, 3), 4),
               std::invalid_argument);
  EXPECT_THROW(largest_eigenvalue(Matrix(0, 0), 4), std::invalid_argument);
  EXPECT_THROW(largest_eigenvalue(Matrix::Zero(2, 2), 0),
               std::invalid_argument);
}

}  // namespace lanczos_test
}  // namespace lipscope
