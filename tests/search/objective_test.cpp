#include "lipscope/search/objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/spectral/golub_kahan.h"
#include "tests/io/test_files.h"
#include "tests/support/layers.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace objective_test {

struct Case {
  Norm norm;
  Index n, d;
};

// the norm from the closed form of the Jacobian; of the token norm the best of
// many starts
double norm_of(Norm norm, const Matrix& J, Index n) {
  if (norm == Norm::two) return test::norm2(J);
  if (norm == Norm::inf) return test::norm_inf(J);
  double best = 0;
  for (std::uint64_t s = 0; s < 20; ++s)
    best = std::max(best, test::token_norm_below(J, n, Rng(s)));
  return best;
}

class Objectives : public testing::TestWithParam<Case> {};

// (4, 6): dense; (6, 12): Golub–Kahan
TEST_P(Objectives, AreTheNormAndItsGradient) {
  const auto [norm, n, d] = GetParam();
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const test::LayerCase c{
        .mask = mask, .heads = 2, .biases = true, .n = n, .d = d};
    const AttentionWeights w = test::random_layer(c);
    const AttentionOptions o = test::options_of(c);
    const Matrix x = test::random_tokens(c), dx = gaussian(n, d, Rng(9));
    Objective objective(w, o, norm, 1);
    const Steepness s = objective(x);
    const auto along = [&](double t) {
      return norm_of(norm, dense_jacobian(w, o, x + t * dx), n);
    };
    const double exact = along(0);
    EXPECT_GE(s.value, exact * (1 - 1e-7)) << name_of(norm);
    EXPECT_LE(s.value, exact * (1 + 1e-5)) << name_of(norm);

    const double slope = s.gradient.cwiseProduct(dx).sum(), h = 1e-5;
    const double numeric = (along(h) - along(-h)) / (2 * h);
    EXPECT_GT(std::abs(slope), 1e-3);
    EXPECT_NE(slope, numeric);
    // singular vectors are searched for to 1e-4, tokens to 1e-8 in the value
    EXPECT_NEAR(slope, numeric, 1e-3 * s.gradient.norm()) << name_of(norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, Objectives,
                         testing::Values(Case{Norm::two, 4, 6},
                                         Case{Norm::two, 6, 12},
                                         Case{Norm::inf, 4, 6},
                                         Case{Norm::token, 4, 6}));

// 70·60 unknowns are searched in f32
TEST(Objective, IsTheSameInF32WhereInputsAreLarge) {
  const test::LayerCase c{.heads = 2, .n = 70, .d = 60};
  const AttentionWeights w = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const Steepness s = Objective(w, test::options_of(c), Norm::two, 1)(x);

  const MultiHeadAttention<double> f(w, test::options_of(c));
  const auto J = f.linearize(x);
  const NormEstimate exact = golub_kahan(*J, {.tolerance = 1e-8});
  EXPECT_NEAR(s.value, exact.value, 1e-5 * exact.value);
  const Vector u = J->apply(exact.direction) / exact.value;
  const Matrix gradient = f.tangent_gradient(x, exact.direction, u);
  EXPECT_LT((s.gradient - gradient).norm(), 1e-2 * gradient.norm());
}

// row 0 is the largest at first; a held row would never see that another one
// overtakes it
TEST(Objective, LooksForTheLargestRowAgain) {
  AttentionWeights w;
  w.query = w.key = w.value = test::scalar(1);
  Objective objective(w, {}, Norm::inf, 1);
  Matrix x(3, 1), y(3, 1);
  x << 0, 3, -3;
  y << 3, 0, -3;
  const double before = objective(x).value;
  double after = 0;
  for (int i = 0; i < 30; ++i) after = objective(y).value;
  EXPECT_NEAR(after, before, 1e-9 * before);
}

TEST(Objective, RefusesDistancesOfMeasures) {
  const AttentionWeights w = test::random_layer({});
  for (const Norm norm : {Norm::w2, Norm::d2})
    EXPECT_TRUE(test::says(test::message_of<std::invalid_argument>(
                               [&] { Objective(w, {}, norm, 1); }),
                           {name_of(norm)}));
}

}  // namespace objective_test
}  // namespace lipscope
