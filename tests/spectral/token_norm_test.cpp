#include "lipscope/spectral/token_norm.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/inf_norm.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace token_norm_test {

TEST(TokenNorm, OfOneTokenIsTheSpectralNorm) {
  const Matrix a = gaussian(5, 4, Rng(1));
  EXPECT_NEAR(token_norm(test::DenseOperator<double>(a), 1).value,
              dense_norm(a).value, 1e-8);
}

TEST(TokenNorm, OfTokensOfOneNumberIsTheInfNorm) {
  const Matrix a = gaussian(6, 6, Rng(2));
  const test::DenseOperator<double> op(a);
  EXPECT_NEAR(token_norm(op, 6).value, inf_norm(op).value, 1e-12);
}

// blocks c_ij O_ij with orthogonal O: all tokens can pull one way, and the norm
// is the largest row sum of |c|
TEST(TokenNorm, OfScaledRotationsIsTheRowSumOfTheirSizes) {
  Matrix c(2, 2), a(4, 4);
  c << 1, -2, 0.5, 4;
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 2; ++j) {
      const double t = 0.3 + static_cast<double>(i + 2 * j);
      a.block(2 * i, 2 * j, 2, 2) << c(i, j) * std::cos(t),
          -c(i, j) * std::sin(t), c(i, j) * std::sin(t), c(i, j) * std::cos(t);
    }
  const TokenNorm norm = token_norm(test::DenseOperator<double>(a), 2);
  EXPECT_NEAR(norm.value, 4.5, 1e-9);
  EXPECT_EQ(norm.token, 1);
  EXPECT_TRUE(norm.converged);
}

TEST(TokenNorm, HasAWitnessAndStaysBelowTheSumOfBlockNorms) {
  const Index n = 4, d = 3, e = 2;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix a = gaussian(n * e, n * d, Rng(seed));
    const TokenNorm norm = token_norm(test::DenseOperator<double>(a), n);
    const Vector y = a * norm.direction;
    EXPECT_NEAR(y.segment(norm.token * e, e).norm(), norm.value, 1e-12);
    EXPECT_NEAR(norm.pull.dot(y), norm.value, 1e-12);
    double above = 0;
    for (Index j = 0; j < n; ++j) {
      EXPECT_LE(norm.direction.segment(j * d, d).norm(), 1 + 1e-14);
      above += dense_norm(a.block(norm.token * e, j * d, e, d)).value;
    }
    EXPECT_LE(norm.value, above);
  }
}

TEST(TokenNorm, NeverFallsFromAGivenStart) {
  const Matrix a = gaussian(12, 12, Rng(5));
  const test::DenseOperator<double> op(a);
  const TokenNorm first =
      token_norm(op, 4, {.max_steps = 1, .start = Vector::Ones(12)});
  const TokenNorm later = token_norm(op, 4, {.start = first.direction});
  EXPECT_GE(later.value, first.value);
}

TEST(TokenNorm, AlsoStartsFromALikelyDirection) {
  const Matrix a = gaussian(12, 12, Rng(7));
  const test::DenseOperator<double> op(a);
  const TokenNorm best = token_norm(op, 4);
  const TokenNormOptions one_step{.max_steps = 1, .starts = 1, .sweep = 0};
  ASSERT_LT(token_norm(op, 4, one_step).value, 0.99 * best.value);
  TokenNormOptions told = one_step;
  told.likely = best.direction;
  EXPECT_NEAR(token_norm(op, 4, told).value, best.value, 1e-12 * best.value);
}

TEST(TokenNorm, RefusesTokensThatDoNotDivide) {
  EXPECT_THROW(
      token_norm(test::DenseOperator<double>(gaussian(5, 4, Rng(6))), 2),
      std::invalid_argument);
}

}  // namespace token_norm_test
}  // namespace lipscope
