#include "lipscope/spectral/inf_norm.h"

#include <gtest/gtest.h>

#include <limits>

#include "lipscope/core/errors.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace inf_norm_test {

using test::DenseOperator;

TEST(InfNorm, IsTheLargestAbsoluteRowSum) {
  const DenseOperator<double> a(
      Matrix{{1.0, -2.0, 3.0}, {-4.0, 0.0, 2.5}, {6.0, 0.0, -0.25}});
  const InfNorm norm = inf_norm(a);
  EXPECT_DOUBLE_EQ(norm.value, 6.5);
  EXPECT_EQ(norm.row, 1);
  EXPECT_EQ(norm.rows, 3);
  EXPECT_EQ(norm.direction, (Vector{{-1.0, 1.0, 1.0}}));
}

TEST(InfNorm, HasADirectionThatReachesIt) {
  const Matrix m = gaussian(37, 53, Rng(1));
  const DenseOperator<double> a(m);
  const InfNorm norm = inf_norm(a);
  EXPECT_NEAR(norm.value, m.cwiseAbs().rowwise().sum().maxCoeff(), 1e-12);
  EXPECT_NEAR(a.apply(norm.direction)[norm.row], norm.value, 1e-12);
  EXPECT_EQ(norm.direction.lpNorm<Eigen::Infinity>(), 1.0);
  EXPECT_EQ(inf_norm(a, {.threads = 1}).value,
            inf_norm(a, {.threads = 3}).value);
}

TEST(InfNorm, OfZeroIsZero) {
  const InfNorm norm = inf_norm(DenseOperator<double>(Matrix::Zero(2, 3)));
  EXPECT_EQ(norm.value, 0.0);
  EXPECT_EQ(norm.direction, Vector::Ones(3));
}

TEST(InfNorm, RefusesMoreEntriesThanItWasAllowed) {
  const DenseOperator<double> a(Matrix::Ones(5, 7));
  EXPECT_NO_THROW(inf_norm(a, {.max_entries = 35}));
  EXPECT_THROW(inf_norm(a, {.max_entries = 34}), std::invalid_argument);
}

TEST(InfNorm, NeverReturnsWhatIsNotANumber) {
  Matrix m = Matrix::Ones(3, 3);
  m(2, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(inf_norm(DenseOperator<double>(m)), RunError);
}

}  // namespace inf_norm_test
}  // namespace lipscope
