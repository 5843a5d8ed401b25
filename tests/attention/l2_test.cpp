// L2 attention, tied and untied: the values that the theory gives by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/attention/one_by_one.h"

namespace lipscope {
namespace l2_test {

using test::column;
using test::jacobian;
using test::norm2;
using test::norm_inf;
using test::one_by_one;
using test::tied;

TEST(L2, ReachesTheClosedFormInTheInfNorm) {
  // token 0 and (n−1)/2 tokens at each of ±√(p+1), p e^{p+1} = n − 1: the row
  // sum of token 0 is 4p − 1 + 2/(p+1)
  const struct {
    Index n;
    double below, above;
  } rows[] = {{3, 2.2192, 2.8522},    {5, 3.0356, 3.8713},
              {9, 4.1408, 5.1605},    {21, 6.0011, 7.2182},
              {51, 8.2260, 9.5906},   {101, 10.0938, 11.5437},
              {501, 14.8638, 16.4525}};
  for (const auto& row : rows) {
    const double p = (row.above - 1) / 4;
    Matrix x = Matrix::Zero(row.n, 1);
    const Index half = (row.n - 1) / 2;
    x.block(1, 0, half, 1).setConstant(std::sqrt(p + 1));
    x.block(1 + half, 0, half, 1).setConstant(-std::sqrt(p + 1));
    const double found = norm_inf(jacobian(tied(1, 1), {.kind = Kind::l2}, x));
    EXPECT_NEAR(found, row.below, 1e-4) << "n = " << row.n;
    EXPECT_LT(found, row.above);
  }
}

TEST(L2, StaysBoundedWhereDotProductDoesNot) {
  double largest = 0;
  for (double t = 0.01; t < 1e4; t *= 1.1)
    largest = std::max(
        largest,
        norm_inf(jacobian(tied(1, 1), {.kind = Kind::l2}, column({0, t, -t}))));
  EXPECT_LT(largest, 2.8522);  // 4p + 1 at n = 3
  EXPECT_GT(largest, 2.2192);
}

TEST(L2, IsQuadraticInItsQueryWeights) {
  // H = d = 1, n = 2, W_Q = 4: ‖J‖₂ reaches 24.1 and more over X = (0, t),
  // though a bound often quoted, with ‖W_Q‖² in place of ‖W_Q‖⁴, says 11.96
  double largest = 0;
  for (double t = 0.001; t < 2; t += 0.001)
    largest = std::max(largest, norm2(jacobian(tied(4, 1), {.kind = Kind::l2},
                                               column({0, t}))));
  EXPECT_GT(largest, 24.1);
}

TEST(L2Untied, GrowsWithoutBound) {
  // x_1 = 2s/|w_q − w_k|, x_2,3 = (w_q x_1 ± s)/w_k: grows like s²
  const auto reaction = [](double s) {
    const double wq = 1, wk = -1, x1 = 2 * s / std::abs(wq - wk);
    return norm2(
        jacobian(one_by_one(wq, wk, 1), {.kind = Kind::l2_untied},
                 column({x1, (wq * x1 + s) / wk, (wq * x1 - s) / wk})));
  };
  EXPECT_NEAR(reaction(30), 2204, 0.5);
  EXPECT_NEAR(reaction(300) / reaction(30), 100, 1);
}

TEST(L2Untied, TiedButWithoutTheFactorGrowsAlongTheNullSpaceOfQ) {
  // two tokens that W_Q cannot tell apart from the origin move ever farther
  // out; with the factor A_h the same tokens leave the Jacobian where it is
  AttentionWeights w;
  w.query = (Matrix(2, 2) << 1, 0, 0, 0).finished();
  w.value = Matrix::Identity(2, 2);
  AttentionWeights without = w;
  without.key = w.query;
  const auto tokens = [](double t) {
    return (Matrix(2, 2) << 0, t, 1, -t).finished();
  };
  const auto grown = [&](double t) {
    return norm2(jacobian(without, {.kind = Kind::l2_untied}, tokens(t)));
  };
  const auto kept = [&](double t) {
    return norm2(jacobian(w, {.kind = Kind::l2}, tokens(t)));
  };
  EXPECT_NEAR(grown(1e4) / grown(1e3), 10, 0.01);
  EXPECT_NEAR(kept(1e4) / kept(1e3), 1, 1e-6);
}

}  // namespace l2_test
}  // namespace lipscope
