#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace tangent_gradient_test {

// ⟨u, J(x) v⟩ from the closed form, which shares nothing with what is tested
double bilinear(const test::LayerCase& c, const AttentionWeights& w,
                const Matrix& x, const Vector& u, const Vector& v) {
  return u.dot(dense_jacobian(w, test::options_of(c), x) * v);
}

void expect_gradient(const test::LayerCase& c) {
  const AttentionWeights w = test::random_layer(c);
  const MultiHeadAttention<double> f(w, test::options_of(c));
  const Matrix x = test::random_tokens(c);
  const Rng rng(c.seed + 77);
  const Vector v = random_direction(x.size(), rng.split(0));
  const Vector u = random_direction(f.linearize(x)->rows(), rng.split(1));
  const Matrix dx = gaussian(x.rows(), x.cols(), rng.split(2));

  const double exact = f.tangent_gradient(x, v, u).cwiseProduct(dx).sum();

  // fourth order; the best step depends on how fast the map bends
  const auto at = [&](double t) { return bilinear(c, w, x + t * dx, u, v); };
  double numeric = 0.0, error = HUGE_VAL;
  for (const double h : {7e-4, 1e-4, 2e-5}) {
    const double quotient =
        (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    if (std::abs(exact - quotient) >= error) continue;
    numeric = quotient;
    error = std::abs(exact - quotient);
  }
  EXPECT_GT(std::abs(exact), 1e-6) << c.name();
  EXPECT_NE(exact, numeric) << c.name();
  // against the size of the gradient, since u, v and dx are random
  const double size = f.tangent_gradient(x, v, u).norm() * dx.norm();
  EXPECT_LT(error, 1e-9 * size) << c.name();
}

TEST(TangentGradient, IsThatOfEveryMakeOfLayer) {
  int number = 0;
  for (const test::LayerCase& c : test::all_layer_cases())
    if (number++ % 3 == 0) expect_gradient(c);
}

TEST(TangentGradient, HoldsForGroupedHeadsAndRotaryPositions) {
  for (const test::LayerCase& c : test::grouped_and_rotated_cases())
    expect_gradient(c);
}

TEST(TangentGradient, HoldsUnderWindowsAndPadding) {
  for (const test::LayerCase& c : test::masked_cases())
    // (a token that is all it sees is mixed by no weights)
    if (!test::sees_only_itself(c.mask) || c.kind == Kind::sigmoid)
      expect_gradient(c);
}

TEST(TangentGradient, IsTheSameInBothPrecisions) {
  for (const Kind kind : all_kinds) {
    const test::LayerCase c{.kind = kind, .heads = 2, .biases = true};
    const AttentionWeights w = test::random_layer(c);
    const Matrix x = test::random_tokens(c);
    const MultiHeadAttention<double> f(w, test::options_of(c));
    const MultiHeadAttention<float> g(w, test::options_of(c));
    const Vector v = random_direction(x.size(), Rng(3));
    const Vector u = random_direction(x.size(), Rng(4));
    const Matrix exact = f.tangent_gradient(x, v, u);
    const Matrix rounded =
        g.tangent_gradient(x.cast<float>(), v.cast<float>(), u.cast<float>())
            .cast<double>();
    EXPECT_LT((exact - rounded).norm(), 2e-5 * exact.norm()) << name_of(kind);
    EXPECT_NE(exact, rounded);
  }
}

TEST(TangentGradient, OfTheTopSingularPairIsThatOfTheNorm) {
  const test::LayerCase c{.mask = Mask::causal, .heads = 2, .biases = true};
  const AttentionWeights w = test::random_layer(c);
  const MultiHeadAttention<double> f(w, test::options_of(c));
  const Matrix x = test::random_tokens(c), dx = gaussian(c.n, c.d, Rng(5));
  const auto norm = [&](double t) {
    return dense_norm(dense_jacobian(w, test::options_of(c), x + t * dx));
  };
  const DenseNorm at = norm(0);
  const Vector u = dense_jacobian(w, test::options_of(c), x) * at.direction;
  const double exact = f.tangent_gradient(x, at.direction, u.normalized())
                           .cwiseProduct(dx)
                           .sum();
  const double h = 1e-5;
  const double numeric = (norm(h).value - norm(-h).value) / (2 * h);
  EXPECT_NE(exact, numeric);
  EXPECT_NEAR(exact, numeric, 1e-7 * std::abs(exact));
}

TEST(TangentGradient, RefusesDirectionsOfTheWrongSize) {
  const test::LayerCase c{};
  const MultiHeadAttention<double> f(test::random_layer(c), {});
  EXPECT_THROW(f.tangent_gradient(test::random_tokens(c), Vector::Ones(3),
                                  Vector::Ones(c.n * c.d)),
               std::invalid_argument);
}

}  // namespace tangent_gradient_test
}  // namespace lipscope
