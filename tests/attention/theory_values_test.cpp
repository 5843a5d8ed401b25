// The values that the theory gives by hand, one for each phenomenon.

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace theory_values_test {

Matrix scalar(double a) { return Matrix::Constant(1, 1, a); }

Matrix column(std::initializer_list<double> tokens) {
  Matrix x(static_cast<Index>(tokens.size()), 1);
  Index i = 0;
  for (const double t : tokens) x(i++, 0) = t;
  return x;
}

Matrix jacobian(const AttentionWeights& weights, AttentionOptions options,
                const Matrix& x) {
  return materialize(
      *MultiHeadAttention<double>(weights, std::move(options)).linearize(x));
}

double norm2(const Matrix& m) {
  return Eigen::JacobiSVD<Matrix>(m).singularValues()[0];
}

double norm_inf(const Matrix& m) {
  return m.cwiseAbs().rowwise().sum().maxCoeff();
}

AttentionWeights one_by_one(double q, double k, double v) {
  AttentionWeights w;
  w.query = scalar(q);
  w.key = scalar(k);
  w.value = scalar(v);
  return w;
}

AttentionWeights tied(double q, double v) {
  AttentionWeights w = one_by_one(q, 0, v);
  w.key = Matrix();
  return w;
}

TEST(DotProduct, IsNotLipschitz) {
  // n = 3, d = 1, A = V = 1, X = (0, t, −t): J_11 = 2t²/3 + 1/3 [Kim21]
  for (const double t : {10.0, 100.0}) {
    const Matrix J = jacobian(one_by_one(1, 1, 1), {}, column({0, t, -t}));
    EXPECT_NEAR(J(0, 0), 2 * t * t / 3 + 1.0 / 3, 1e-9 * t * t);
  }
}

TEST(DotProduct, OfOneTokenIsItsValueMap) {
  AttentionWeights w;
  w.query = gaussian(4, 4, Rng(1));
  w.key = gaussian(4, 4, Rng(2));
  w.value = gaussian(4, 4, Rng(3));
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const Matrix J = jacobian(w, {.mask = mask}, gaussian(1, 4, Rng(4)));
    EXPECT_LT((J - w.value.transpose()).norm(), 1e-14);
    EXPECT_NEAR(norm2(J), norm2(w.value), 1e-14);
  }
}

TEST(DotProduct, ReactsLikeTheRootOfItsLength) {
  // d = 2, A = diag(−.5, −.05), R = 2, n = 20, X = R(−u, u, …, u) [Castin24]
  AttentionWeights w;
  w.query = (Matrix(2, 2) << -0.5, 0, 0, -0.05).finished() * std::sqrt(2.0);
  w.key = Matrix::Identity(2, 2);
  w.value = Matrix::Identity(2, 2);
  Matrix x = Matrix::Zero(20, 2);
  x.col(0).setConstant(2.0);
  x(0, 0) = -2.0;
  EXPECT_NEAR(norm2(jacobian(w, {}, x)), 6.8825, 5e-5);
  EXPECT_NEAR(norm2(jacobian(w, {.mask = Mask::causal}, x)), 6.0977, 5e-5);
}

TEST(Sigmoid, WithoutQueriesAddsEveryTokenByItsShare) {
  // σ(−log n) = 1/(1 + n) for each token seen, with the full n: J = 11ᵀ/(1+n)
  const Matrix J = jacobian(one_by_one(0, 1, 3), {.kind = Kind::sigmoid},
                            column({1, -2, 5}));
  EXPECT_LT((J - Matrix::Constant(3, 3, 3.0 / 4)).norm(), 1e-15);
  const Matrix masked = jacobian(one_by_one(0, 1, 3),
                                 {.kind = Kind::sigmoid, .mask = Mask::causal},
                                 column({1, -2, 5}));
  EXPECT_NEAR(masked(0, 0), 3.0 / 4, 1e-15);
  EXPECT_EQ(masked(0, 1), 0.0);
}

TEST(Sigmoid, KeyAndValueBiasesAct) {
  AttentionWeights w = one_by_one(1, 1, 1);
  const Matrix x = column({0.5, -1});
  const Matrix without = jacobian(w, {.kind = Kind::sigmoid}, x);
  w.value_bias = Vector::Ones(1);
  EXPECT_GT((jacobian(w, {.kind = Kind::sigmoid}, x) - without).norm(), 1e-2);
}

TEST(Cosine, OfOneTokenIsItsNormalisedValue) {
  // d(ν z/√(z² + ε)) = ν ε/(z² + ε)^{3/2} at z = v x: v = 2, x = 3, ε = 64
  AttentionOptions options{.kind = Kind::cosine};
  options.cosine = {.tau = 10, .nu = 5, .epsilon = 64};
  const Matrix J = jacobian(one_by_one(1, 1, 2), options, column({3}));
  EXPECT_NEAR(J(0, 0), 2 * 5 * 64 / 1000.0, 1e-14);
}

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

}  // namespace theory_values_test
}  // namespace lipscope
