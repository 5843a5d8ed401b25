#include "lipscope/operators/compose.h"

#include <gtest/gtest.h>

#include "lipscope/operators/check.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace compose_test {

MapPtr<double> layer(std::uint64_t seed) {
  const test::LayerCase c{.heads = 2, .biases = true, .seed = seed};
  return std::make_unique<MultiHeadAttention<double>>(test::random_layer(c),
                                                      AttentionOptions{});
}

const Matrix x = gaussian(5, 12, Rng(1));

Matrix jacobian(const Map<double>& f, const Matrix& at = x) {
  return materialize(*f.linearize(at));
}

void expect_sound(const Map<double>& f, const Matrix& at = x) {
  const DerivativeCheck check = check_derivative(f, at, Rng(2));
  EXPECT_LT(check.error, 1e-9);
  EXPECT_GT(check.magnitude, 1e-3);
  EXPECT_FALSE(check.identical);
  EXPECT_LT(adjoint_defect(*f.linearize(at), Rng(3)), 1e-13);
}

TEST(Compose, ObeysTheChainRule) {
  const auto f = layer(1), g = layer(2);
  const auto both = compose(layer(1), layer(2));
  EXPECT_EQ((*both)(x), (*f)((*g)(x)));
  EXPECT_LT((jacobian(*both) - jacobian(*f, (*g)(x)) * jacobian(*g)).norm(),
            1e-13);
  expect_sound(*both);
}

TEST(Residual, AddsTheIdentity) {
  const auto f = residual(layer(1));
  EXPECT_EQ((*f)(x), x + (*layer(1))(x));
  EXPECT_LT(
      (jacobian(*f) - Matrix::Identity(60, 60) - jacobian(*layer(1))).norm(),
      1e-14);
  expect_sound(*f);
}

TEST(Sum, AddsJacobians) {
  const auto f = sum(layer(1), layer(2));
  EXPECT_LT((jacobian(*f) - jacobian(*layer(1)) - jacobian(*layer(2))).norm(),
            1e-13);
  EXPECT_EQ((*f)(x), (*layer(1))(x) + (*layer(2))(x));
  expect_sound(*f);
}

TEST(Scale, ScalesTheJacobian) {
  const auto f = scale(-2.5, layer(1));
  EXPECT_LT((jacobian(*f) + 2.5 * jacobian(*layer(1))).norm(), 1e-13);
  expect_sound(*f);
}

TEST(Batch, IsBlockDiagonal) {
  const Matrix stacked = gaussian(10, 12, Rng(4));
  const auto f = batch(layer(1), 2);
  const Matrix J = jacobian(*f, stacked);
  EXPECT_EQ(J.block(0, 60, 60, 60), Matrix::Zero(60, 60));
  EXPECT_EQ(J.block(60, 0, 60, 60), Matrix::Zero(60, 60));
  EXPECT_EQ(J.block(60, 60, 60, 60),
            jacobian(*layer(1), stacked.bottomRows(5)));
  expect_sound(*f, stacked);
}

TEST(Compose, RefusesPartsThatDoNotFit) {
  const MapPtr<double> f = layer(1);  // an operator must not outlive its map
  std::vector<OperatorPtr<double>> blocks;
  blocks.push_back(f->linearize(x));
  blocks.push_back(f->linearize(x));
  OperatorPtr<double> large = block_diagonal(std::move(blocks));
  EXPECT_THROW(compose(std::move(large), f->linearize(x)),
               std::invalid_argument);
  EXPECT_THROW((*batch(layer(1), 2))(x), std::invalid_argument);
}

}  // namespace compose_test
}  // namespace lipscope
