#include "lipscope/core/cholesky.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace cholesky_test {

Matrix positive(Index n, std::uint64_t seed) {
  const Matrix b = gaussian(n, n + 2, Rng(seed));
  return b * b.transpose();
}

TEST(FactorInPlace, IsAFactorAndLeavesTheUpperTriangle) {
  for (const Index n : {1, 2, 127, 128, 129, 300}) {
    const Matrix a = positive(n, 1);
    Matrix f = a;
    // nothing above the diagonal is read
    f.triangularView<Eigen::StrictlyUpper>().setConstant(NAN);
    ASSERT_TRUE(factor_in_place(f, 1)) << n;
    EXPECT_TRUE(n == 1 || std::isnan(f(0, n - 1)));
    Matrix l = Matrix::Zero(n, n);
    l.triangularView<Eigen::Lower>() = f;
    EXPECT_LT((l * l.transpose() - a).norm(), 1e-13 * n * a.norm()) << n;
    Matrix other = a;
    ASSERT_TRUE(factor_in_place(other, 3));
    Matrix m = Matrix::Zero(n, n);
    m.triangularView<Eigen::Lower>() = other;
    EXPECT_EQ(l, m) << "threads changed it at " << n;
  }
}

TEST(FactorInPlace, SeesWhatIsNotPositive) {
  for (const Index n : {1, 128, 200}) {
    Matrix a = positive(n, 2);
    a(n - 1, n - 1) = -1.0;
    EXPECT_FALSE(factor_in_place(a, 1)) << n;
    a = positive(n, 2);
    a(n - 1, 0) = NAN;
    EXPECT_FALSE(factor_in_place(a, 1)) << n;
    a = Matrix::Zero(n, n);
    EXPECT_FALSE(factor_in_place(a, 1)) << n;
  }
  Matrix none(0, 0);
  EXPECT_TRUE(factor_in_place(none, 1));
}

}  // namespace cholesky_test
}  // namespace lipscope
