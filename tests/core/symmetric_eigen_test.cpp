#include "lipscope/core/symmetric_eigen.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace symmetric_eigen_test {

TEST(SymmetricEigen, PutsTheMatrixTogetherAgain) {
  const Matrix half = gaussian(7, 7, Rng(1));
  const Matrix a = half + half.transpose();
  const SymmetricEigen e = symmetric_eigen(a);
  ASSERT_TRUE(e.converged);
  const Matrix again =
      e.vectors * e.values.asDiagonal() * e.vectors.transpose();
  EXPECT_LT((again - a).norm(), 1e-13 * a.norm());
  EXPECT_LT((e.vectors.transpose() * e.vectors - Matrix::Identity(7, 7)).norm(),
            1e-13);
  for (Index i = 1; i < 7; ++i) EXPECT_LT(e.values[i - 1], e.values[i]);
  EXPECT_LT((symmetric_eigenvalues(a) - e.values).norm(), 1e-13 * a.norm());
}

TEST(SymmetricEigen, ReadsTheLowerTriangle) {
  Matrix a(2, 2);
  a << 2.0, 99.0, 1.0, 2.0;  // [2 1; 1 2] has 1 and 3
  EXPECT_NEAR(symmetric_eigen(a).values[0], 1.0, 1e-15);
  EXPECT_NEAR(symmetric_eigenvalues(a)[1], 3.0, 1e-15);
}

}  // namespace symmetric_eigen_test
}  // namespace lipscope
