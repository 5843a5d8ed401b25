// What is measured is the norm of the dense Jacobian, whatever the layer.

#include <gtest/gtest.h>

#include "lipscope/attention/dense.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/estimate.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace {

using test::LayerCase;

Measurement measure(const AttentionWeights& weights,
                    const AttentionOptions& options, const Matrix& x,
                    Index dense_limit) {
  return measure_norm(MultiHeadAttention<float>(weights, options),
                      MultiHeadAttention<double>(weights, options), x,
                      {.tolerance = 1e-7, .dense_limit = dense_limit});
}

void expect_the_norm(const Measurement& m, double exact,
                     const std::string& name) {
  EXPECT_NEAR(m.lower, exact, 1e-6 * exact) << name << ", " << m.lower_by;
  EXPECT_LE(m.lower, exact * (1 + 1e-9)) << name;
  EXPECT_TRUE(m.converged) << name << ", residual " << m.residual;
  EXPECT_GE(m.upper_whp.value_or(m.lower), m.lower) << name;
}

class MeasuredLayer : public testing::TestWithParam<LayerCase> {};

TEST_P(MeasuredLayer, HasTheNormOfTheDenseJacobian) {
  const LayerCase& c = GetParam();
  const AttentionWeights weights = test::random_layer(c);
  for (const double size : {1.0, 100.0}) {
    const Matrix x = test::random_tokens(c, size);
    const double exact =
        dense_norm(dense_jacobian(weights, test::options_of(c), x)).value;
    // by the dense SVD, and by iterations in f32 and f64
    expect_the_norm(measure(weights, test::options_of(c), x, 512), exact,
                    c.name());
    expect_the_norm(measure(weights, test::options_of(c), x, 0), exact,
                    c.name());
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, MeasuredLayer,
                         testing::ValuesIn(test::all_layer_cases()));

TEST(MeasuredLayerOfTwinSingularValues, HasTheNormOfTheDenseJacobian) {
  // without queries attention is uniform, and J = (11ᵀ/n) ⊗ V: the singular
  // values are those of V, as near to each other as one likes
  for (const double gap : {0.0, 1e-12, 1e-9, 1e-6, 1e-3}) {
    const Index d = 12;
    AttentionWeights w;
    w.query = w.key = Matrix::Zero(d, d);
    w.value = Matrix::Identity(d, d);
    for (Index i = 1; i < d; ++i) w.value(i, i) = (1 - gap) * (i < 4 ? 1 : 0.5);
    const Matrix x = gaussian(6, d, Rng(1));
    expect_the_norm(measure(w, {}, x, 0), 1.0, std::to_string(gap));
    expect_the_norm(measure(w, {}, x, 512), 1.0, std::to_string(gap));
  }
}

TEST(MeasuredLayer, OfManySequencesIsEachOfThem) {
  const LayerCase c{.heads = 2, .biases = true};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = gaussian(4 * c.n, c.d, Rng(2));
  AttentionOptions options;
  options.sequences = 4;
  const auto together =
      measure_norms(MultiHeadAttention<float>(weights, options),
                    MultiHeadAttention<double>(weights, options), x,
                    {.tolerance = 1e-7, .dense_limit = 0, .sequences = 4});
  ASSERT_EQ(together.size(), 4u);
  for (Index b = 0; b < 4; ++b) {
    const Matrix alone = x.middleRows(b * c.n, c.n);
    expect_the_norm(together[b],
                    dense_norm(dense_jacobian(weights, {}, alone)).value,
                    std::to_string(b));
  }
}

TEST(MeasuredLayer, HasTheSameBitsForAnyNumberOfThreads) {
  const LayerCase c{.mask = Mask::causal, .heads = 4, .n = 130, .d = 140};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const auto run = [&](int threads) {
    const AttentionOptions options{.mask = c.mask, .threads = threads};
    return measure_norm(MultiHeadAttention<float>(weights, options),
                        MultiHeadAttention<double>(weights, options), x,
                        {.threads = threads});
  };
  const Measurement one = run(1), two = run(2);
  EXPECT_EQ(one.lower, two.lower);
  EXPECT_EQ(one.upper_whp, two.upper_whp);
  EXPECT_EQ(one.residual, two.residual);
  EXPECT_EQ(one.direction, two.direction);
  EXPECT_EQ(one.steps, two.steps);
}

}  // namespace
}  // namespace lipscope
