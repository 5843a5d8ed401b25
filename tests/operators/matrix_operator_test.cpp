#include "lipscope/operators/matrix_operator.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace matrix_operator_test {

// 600 rows are more than one piece of work
const Matrix a = gaussian(600, 1000, Rng(1));
const Vector v = gaussian(1000, 1, Rng(2)), u = gaussian(600, 1, Rng(3));

// The products of a matrix that lies so in memory are those of `is`.
template <class Real, class Stored>
void expect_products(const StridedMatrix<Stored>& lies, const Matrix& is) {
  const MatrixOperator<Stored, Real> one(lies, 1), two(lies, 2);
  const VectorOf<Real> x = v.head(is.cols()).cast<Real>(),
                       y = u.head(is.rows()).cast<Real>();
  const VectorOf<Real> forth = one.apply(x), back = one.apply_adjoint(y);
  const double unit = std::numeric_limits<Real>::epsilon();
  const double forth_error =
      (forth.template cast<double>() - is * x.template cast<double>()).norm();
  const double back_error = (back.template cast<double>() -
                             is.transpose() * y.template cast<double>())
                                .norm();
  EXPECT_LE(forth_error, 32 * unit * is.norm() * x.norm());
  EXPECT_LE(back_error, 32 * unit * is.norm() * y.norm());
  // the same bits on any number of threads
  EXPECT_EQ(forth, two.apply(x));
  EXPECT_EQ(back, two.apply_adjoint(y));
}

TEST(MatrixOperator, MultipliesRowsAndColumnsAsTheyLie) {
  expect_products<double>(StridedMatrix<double>{a.data(), 600, 1000, 1000, 1},
                          a);
  const Eigen::MatrixXd by_columns = a;
  expect_products<double>(
      StridedMatrix<double>{by_columns.data(), 600, 1000, 1, 600}, a);
}

TEST(MatrixOperator, MultipliesEveryOtherEntryAndBackwards) {
  Matrix every_other(300, 500);
  for (Index i = 0; i < 300; ++i)
    for (Index j = 0; j < 500; ++j) every_other(i, j) = a(2 * i, 2 * j);
  expect_products<double>(StridedMatrix<double>{a.data(), 300, 500, 2000, 2},
                          every_other);
  const double* last = a.data() + a.size() - 1;
  expect_products<double>(StridedMatrix<double>{last, 600, 1000, -1000, -1},
                          a.reverse());
}

TEST(MatrixOperator, ReadsF32InEitherPrecision) {
  const MatrixOf<float> stored = a.cast<float>();
  const StridedMatrix<float> lies{stored.data(), 600, 1000, 1000, 1};
  expect_products<float>(lies, stored.cast<double>());
  expect_products<double>(lies, stored.cast<double>());
}

TEST(MatrixOperator, RefusesWhatDoesNotFit) {
  const MatrixOperator<double, double> op({a.data(), 600, 1000, 1000, 1});
  EXPECT_THROW(op.apply(u), std::invalid_argument);
  EXPECT_THROW(op.apply_adjoint(v), std::invalid_argument);
  EXPECT_THROW((MatrixOperator<double, double>({a.data(), 0, 3, 3, 1})),
               std::invalid_argument);
}

}  // namespace matrix_operator_test
}  // namespace lipscope
