#include "lipscope/search/ascent.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace ascent_test {

TEST(Ascent, FindsTheTopOfAHillThatBendsUnevenly) {
  const Matrix top = gaussian(4, 3, Rng(1));
  Matrix bend(4, 3);
  for (Index i = 0; i < bend.size(); ++i)
    bend.data()[i] = std::pow(2.0, static_cast<double>(i % 12));
  const auto hill = [&](const Matrix& x) {
    const Matrix off = x - top;
    return Steepness{10 - 0.5 * bend.cwiseProduct(off.cwiseAbs2()).sum(),
                     Matrix(-bend.cwiseProduct(off))};
  };
  const Ascent a = ascend(hill, everywhere(), Matrix::Zero(4, 3));
  EXPECT_TRUE(a.converged);
  EXPECT_NEAR(a.value, 10, 1e-8);
  EXPECT_LT((a.x - top).norm(), 2e-4);
  EXPECT_LT(a.start, a.value);
}

// the largest ⟨c, x⟩ over the ball is at R c_i/|c_i|, token by token
TEST(Ascent, StopsAtTheEdgeOfTheBall) {
  const Matrix c = gaussian(5, 3, Rng(2));
  const Ascent a = ascend(
      [&](const Matrix& x) {
        return Steepness{100 + c.cwiseProduct(x).sum(), c};
      },
      ball(2), 0.1 * gaussian(5, 3, Rng(3)));
  EXPECT_TRUE(a.converged);
  EXPECT_NEAR(a.value, 100 + 2 * c.rowwise().norm().sum(), 1e-8);
  EXPECT_LE(a.x.rowwise().norm().maxCoeff(), 2 * (1 + 1e-14));
}

TEST(Ascent, KeepsTheStartWhereNothingIsHigher) {
  const auto valley = [](const Matrix& x) {
    return Steepness{-x.squaredNorm(), Matrix(2 * x)};  // a wrong gradient
  };
  const Matrix x = gaussian(3, 2, Rng(4));
  const Ascent a = ascend(valley, everywhere(), x);
  EXPECT_GE(a.value, a.start);
  EXPECT_EQ(a.x, x);
}

TEST(Ascent, StopsWhenToldTo) {
  int asked = 0;
  const auto slope = [](const Matrix& x) {
    return Steepness{x.sum(), Matrix::Ones(x.rows(), x.cols())};
  };
  const Ascent a = ascend(slope, everywhere(), Matrix::Ones(2, 2),
                          {.keep_going = [&] { return ++asked < 3; }});
  EXPECT_FALSE(a.converged);
  EXPECT_LE(a.evaluations, 4);
  EXPECT_EQ(
      ascend(slope, everywhere(), Matrix::Ones(2, 2), {.max_evaluations = 7})
          .evaluations,
      7);
}

TEST(Ascent, RefusesAnEmptyStart) {
  const auto flat = [](const Matrix& x) { return Steepness{1.0, 0 * x}; };
  EXPECT_THROW(ascend(flat, everywhere(), Matrix()), std::invalid_argument);
}

}  // namespace ascent_test
}  // namespace lipscope
