#include "lipscope/theory/position_heads_bound.h"

#include <gtest/gtest.h>

#include "tests/theory/cases.h"

namespace lipscope {
namespace position_heads_bound_test {

// s = (0.5 + 0.25, 1), c = (0.6, 0.8), ‖V‖ = (2, 3), along one direction or two
PositionHeads two_heads(bool one_direction) {
  PositionHeads heads{.weights = (Matrix(2, 2) << 0.5, 0, 0.25, 1).finished(),
                      .value = (Matrix(2, 2) << 2, 0, 0, 3).finished(),
                      .share = (Vector(2) << 0.6, 0.8).finished(),
                      .width = 2};
  if (one_direction) heads.value << 2, 3, 0, 0;
  return heads;
}

double lipschitz(const PositionHeads& heads, Norm norm) {
  return position_heads_lipschitz(heads, norm).value();
}

Matrix jacobian(const PositionHeads& heads, Index n) {
  return materialize(*PositionHeadsMap<double>(heads).linearize(
      Matrix::Zero(n, heads.value.rows())));
}

TEST(PositionHeadsBound, IsTheFormulaWorkedByHand) {
  // c s ‖V‖ is 0.6·0.75·2 = 0.9 and 0.8·1·3 = 2.4: 0.81 + 5.76 = 6.57
  for (const bool one : {true, false})
    EXPECT_NEAR(lipschitz(two_heads(one), Norm::token), std::sqrt(6.57), 1e-13);
  // side by side (0.9, 2.4) along one direction, or diag(0.9, 2.4)
  EXPECT_NEAR(lipschitz(two_heads(true), Norm::two), std::sqrt(6.57), 1e-13);
  EXPECT_NEAR(lipschitz(two_heads(false), Norm::two), 2.4, 1e-13);
}

TEST(PositionHeadsBound, IsNeverBelowAndAttainedByShifts) {
  PositionHeads heads = two_heads(true);
  // distances 1 and 2 alone
  heads.weights = (Matrix(3, 2) << 0, 0, 1, 0, 0, 1).finished();
  for (const bool one : {true, false}) {
    heads.value = two_heads(one).value;
    const Matrix j = jacobian(heads, 4);
    const double two = lipschitz(heads, Norm::two);
    const double token = lipschitz(heads, Norm::token);
    EXPECT_LE(test::norm2(j), two);
    EXPECT_NEAR(test::norm2(j), two, 1e-12 * two);
    EXPECT_LE(test::token_norm_below(j, 4, Rng(1)), token);
    EXPECT_NEAR(test::token_norm_below(j, 4, Rng(1)), token, 1e-12 * token);
  }
  // with all shares on one distance the two heads have one token to read, and
  // the token norm is the other
  heads.weights << 1, 1, 0, 0, 0, 0;
  heads.value = two_heads(false).value;
  EXPECT_NEAR(test::token_norm_below(jacobian(heads, 4), 4, Rng(1)), 2.4, 1e-6);
}

TEST(PositionHeadsBound, IsNeverBelowWhatRandomHeadsReach) {
  double nearest_two = 0.0, nearest_token = 0.0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Rng rng(seed);
    const Index h = 1 + Index(seed % 3), k = 1 + Index(seed / 3 % 2);
    const Index t = 1 + Index(seed % 5), n = 2 + Index(seed % 4);
    const PositionHeads heads{
        .weights = gaussian(t, h, rng.split(0)).array().exp(),
        .value = gaussian(3, h * k, rng.split(1)),
        .share = gaussian(h, 1, rng.split(2)).cwiseAbs(),
        .width = h * k + 1};
    const Matrix j = jacobian(heads, n);
    const double two = test::norm2(j) / lipschitz(heads, Norm::two);
    const double token = test::token_norm_below(j, n, rng.split(3)) /
                         lipschitz(heads, Norm::token);
    EXPECT_LE(two, 1.0) << seed;
    EXPECT_LE(token, 1.0) << seed;
    nearest_two = std::max(nearest_two, two);
    nearest_token = std::max(nearest_token, token);
  }
  // it is no bound by chance: some come near
  EXPECT_GT(nearest_two, 0.9);
  EXPECT_GT(nearest_token, 0.99);
}

TEST(PositionHeadsBound, IsRefusedInOtherNorms) {
  EXPECT_THROW(position_heads_lipschitz(two_heads(true), Norm::inf),
               std::invalid_argument);
}

}  // namespace position_heads_bound_test
}  // namespace lipscope
