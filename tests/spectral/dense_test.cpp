#include "lipscope/spectral/dense.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace dense_test {

TEST(DenseNorm, FindsThePrescribedValues) {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{120, 80},
                                   {80, 120},
                                   {10, 10},
                                   {1, 9},
                                   {9, 1}}) {
    const Index rank = std::min(rows, cols);
    const Vector s = Vector::LinSpaced(rank, rank, 1.0);
    const Matrix a = test::with_singular_values(rows, cols, s);
    const DenseNorm norm = dense_norm(a);
    EXPECT_NEAR(norm.value / s[0], 1.0, 1e-14);
    EXPECT_GT(norm.upper, s[0]);
    EXPECT_NEAR(norm.second, rank > 1 ? s[1] : 0.0, 1e-12 * s[0]);
    EXPECT_NEAR((a * norm.direction).norm() / s[0], 1.0, 1e-14);
    EXPECT_NEAR(norm.direction.norm(), 1.0, 1e-14);
  }
}

TEST(DenseNorm, LeavesTheStatedRoomAbove) {
  // λ₁ = 9, ‖A‖_F² = 180: upper² = 9 (1 + 320u) + 1.01 · 40u · 180
  const DenseNorm norm = dense_norm(3.0 * Matrix::Identity(20, 40));
  EXPECT_DOUBLE_EQ(norm.value, 3.0);
  EXPECT_NEAR((norm.upper - 3.0) / 0x1p-53, (9 * 320 + 7272) / 6.0, 8.0);
}

TEST(DenseNorm, HoldsWhereDivideAndConquerReadsBeyondItsArrays) {
  // one-hot attention: exact zeros and repeated rows, on which Eigen 3.4.0's
  // BDCSVD has been seen to crash
  for (Index seed = 0; seed < 40; ++seed) {
    Matrix a = Matrix::Zero(60, 60);
    const Matrix block = gaussian(12, 12, Rng(seed));
    for (Index i = 0; i < 5; ++i)
      a.block(12 * i, 12 * ((i * seed) % 5), 12, 12) = block;
    const DenseNorm norm = dense_norm(a);
    EXPECT_NEAR((a * norm.direction).norm(), norm.value, 1e-13 * norm.value);
    EXPECT_LE(a.norm() / std::sqrt(60.0), norm.value);
  }
}

TEST(DenseNorm, OfZeroIsZero) {
  const DenseNorm norm = dense_norm(Matrix::Zero(6, 4));
  EXPECT_EQ(norm.value, 0.0);
  EXPECT_EQ(norm.upper, 0.0);
  EXPECT_NEAR(norm.direction.norm(), 1.0, 1e-15);
}

TEST(DenseNorm, HoldsWhereSquaresWouldNot) {
  for (const double scale : {1e-250, 1e250}) {
    const Vector s = Vector::LinSpaced(40, 2.0, 0.0);
    const Matrix a = scale * test::with_singular_values(40, 40, s);
    EXPECT_NEAR(dense_norm(a).value / scale, 2.0, 1e-13);
  }
}

TEST(DenseNorm, HoldsForRepeatedAndVanishingValues) {
  // equal and zero values are what divide and conquer deflates
  Vector s = Vector::Zero(200);
  s.head(60).setOnes();
  const DenseNorm norm = dense_norm(test::with_singular_values(200, 200, s));
  EXPECT_NEAR(norm.value, 1.0, 1e-13);
  EXPECT_NEAR(norm.second, 1.0, 1e-13);
}

TEST(DenseNorm, RefusesWhatIsNotFinite) {
  Matrix a = Matrix::Ones(3, 3);
  a(1, 1) = std::numeric_limits<double>::infinity();
  EXPECT_THROW(dense_norm(a), std::invalid_argument);
  EXPECT_THROW(dense_norm(Matrix(0, 3)), std::invalid_argument);
}

}  // namespace dense_test
}  // namespace lipscope
