// Norm layers.

#include "lipscope/theory/norm_layer_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace norm_layer_bound_test {

using test::expect_close;
using test::norm2;
using test::norm_inf;

Matrix layer_norm_jacobian(const NormWeights& norm, const Vector& x) {
  const Index D = x.size();
  const double d = static_cast<double>(D);
  const Vector z = x.array() - x.mean();
  const double s2 = z.squaredNorm() / d + norm.epsilon;
  const Matrix inner = Matrix::Identity(D, D) - Matrix::Ones(D, D) / d -
                       z * z.transpose() / (d * s2);
  return norm.gain.asDiagonal() * inner / std::sqrt(s2);
}

TEST(NormLayerBound, BoundsHoldAndAreNearlyReached) {
  const NormWeights norm{.gain = Vector{{1.0, -3.0, 2.0, 0.5}},
                         .epsilon = 0.25};
  expect_close(norm_layer_everywhere(norm).value(), 3 / 0.5);
  expect_close(norm_layer_local(norm, 2.0).value(), 3 / 1.5);
  expect_close(layer_norm_everywhere_inf(norm).value(),
               (2 + std::sqrt(3.0) / std::pow(3.0, 1.5)) * 6);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const double size = std::exp(3 * Rng(seed).split(1).normal());
    const Vector x = size * flatten(gaussian(1, 4, Rng(seed)));
    const Matrix J = layer_norm_jacobian(norm, x);
    const double variance = (x.array() - x.mean()).square().mean();
    EXPECT_LE(norm2(J), norm_layer_local(norm, variance).value() * (1 + 1e-12));
    EXPECT_LE(norm_inf(J), layer_norm_everywhere_inf(norm).value());
  }
}

TEST(FalseForms, LayerNormInTheInfNorm) {
  // σ² = 2ε, z_1² = half of |z|², the rest equal and of both signs
  for (const Index D : {256, 512}) {
    const double d = static_cast<double>(D);
    const NormWeights norm{.gain = Vector::Ones(D), .epsilon = 1e-5};
    Vector x = Vector::Constant(D, 1.0);
    for (Index i = 1; i < D; i += 2) x[i] = -1.0;
    x[0] = std::sqrt(d - 1.0);
    const Vector z = x.array() - x.mean();
    x *= std::sqrt(2e-5 * d / z.squaredNorm());
    const double reached = norm_inf(layer_norm_jacobian(norm, x));
    const double quoted = 2 * (d - 1) / d / std::sqrt(1e-5);
    EXPECT_GT(reached, quoted);
    EXPECT_LT(reached, layer_norm_everywhere_inf(norm).value());
    EXPECT_GT(reached, 0.65 * layer_norm_everywhere_inf(norm).value());
  }
}

}  // namespace norm_layer_bound_test
}  // namespace lipscope
