#include "lipscope/spectral/token_flow.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lipscope/attention/dense.h"
#include "lipscope/spectral/dense.h"
#include "tests/spectral/known_operators.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace token_flow_test {

constexpr Index n = 5, d = 12;

// Blocks of the Jacobian in closed form (attention/dense.h), which shares no
// code with the operator.
Matrix flow_by_blocks(const Matrix& jacobian, const Vector& v) {
  const Vector image = jacobian * v;
  Matrix flow(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const Vector arrives =
          jacobian.block(i * d, j * d, d, d) * v.segment(j * d, d);
      flow(i, j) =
          arrives.dot(image.segment(i * d, d)) / (image.norm() * image.norm());
    }
  return flow;
}

// two sequences under one another, as `measure` has them
struct TwoSequences {
  explicit TwoSequences(Mask mask)
      : c{.mask = mask, .heads = 2, .seed = 7}, weights(random_layer(c)) {
    x = 2.0 * gaussian(2 * n, d, Rng(3));
    AttentionOptions stacked{.mask = mask, .sequences = 2};
    const MultiHeadAttention<double> map(weights, stacked);
    for (Index b = 0; b < 2; ++b) {
      jacobians.push_back(dense_jacobian(weights, {.mask = mask},
                                         Matrix(x.middleRows(b * n, n))));
      const DenseNorm top = dense_norm(jacobians.back());
      Measurement m;
      m.direction = top.direction;
      m.image = jacobians.back() * top.direction;
      found.push_back(m);
    }
    flows = token_flows(*map.linearize(x), found, n);
  }

  test::LayerCase c;
  AttentionWeights weights;
  Matrix x;
  std::vector<Matrix> jacobians;
  std::vector<Measurement> found;
  std::vector<Matrix> flows;
};

TEST(TokenFlow, IsThatOfTheBlocksOfTheDenseJacobian) {
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const TwoSequences s(mask);
    ASSERT_EQ(s.flows.size(), 2u);
    for (Index b = 0; b < 2; ++b) {
      const Matrix expected =
          flow_by_blocks(s.jacobians[b], s.found[b].direction);
      EXPECT_LT((s.flows[b] - expected).cwiseAbs().maxCoeff(), 1e-12);
      EXPECT_GT((expected - expected.transpose()).cwiseAbs().maxCoeff(), 0.01)
          << "rows and columns must be told apart";
    }
    EXPECT_GT((s.flows[0] - s.flows[1]).cwiseAbs().maxCoeff(), 0.01);
    // nothing flows from a token to those before it
    if (mask == Mask::causal) {
      for (Index i = 0; i < n; ++i)
        for (Index j = i + 1; j < n; ++j) EXPECT_EQ(s.flows[0](i, j), 0.0);
    }
  }
}

TEST(TokenFlow, SumsToWhatComesOutAndToWhatWentIn) {
  const TwoSequences s(Mask::none);
  for (Index b = 0; b < 2; ++b)
    for (Index t = 0; t < n; ++t) {
      const Vector &v = s.found[b].direction, &u = s.found[b].image;
      EXPECT_NEAR(s.flows[b].row(t).sum(),
                  u.segment(t * d, d).squaredNorm() / u.squaredNorm(), 1e-12);
      EXPECT_NEAR(s.flows[b].col(t).sum(),
                  v.segment(t * d, d).squaredNorm() / v.squaredNorm(), 1e-9);
    }
}

TEST(TokenFlow, IsNegativeWherePartsWorkAgainstEachOther) {
  // one feature, two tokens: 3 and −1 come together at token 0, 0 at token 1
  Matrix a(2, 2);
  a << 3.0, -1.0, 0.0, 0.0;
  Measurement m;
  m.direction = Vector::Ones(2);
  m.image = a * m.direction;
  const test::LinearMap<double> map(a);
  const auto j = map.linearize(Matrix::Zero(2, 1));
  const Matrix flow = token_flows(*j, {m}, 2).at(0);
  EXPECT_EQ(flow, (Matrix(2, 2) << 1.5, -0.5, 0.0, 0.0).finished());
}

TEST(TokenFlow, IsEmptyWhereNothingComesOutAndRefusesOtherSizes) {
  Measurement m;
  m.direction = Vector::Ones(2);
  m.image = Vector::Zero(2);
  const test::LinearMap<double> zero(Matrix::Zero(2, 2));
  const auto j = zero.linearize(Matrix::Zero(2, 1));
  EXPECT_EQ(token_flows(*j, {m}, 2).at(0).size(), 0);
  EXPECT_THROW(token_flows(*j, {m}, 3), std::invalid_argument);
  EXPECT_THROW(token_flows(*j, {m, m}, 1), std::invalid_argument);
  EXPECT_THROW(token_flows(*j, {}, 1), std::invalid_argument);
}

}  // namespace token_flow_test
}  // namespace lipscope
