// What is measured is the norm of the dense Jacobian, whatever the layer.

#include <gtest/gtest.h>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/dense.h"
#include "lipscope/attention/layer_norm.h"
#include "lipscope/operators/compose.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/shift_direction.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace measured_test {

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
  EXPECT_NEAR(m.lower, exact, 1e-6 * exact)
      << name << ", " << name_of(m.lower_by);
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

// That the shift is the right one shows without a mask, where the outputs' mean
// must be longest for it.
TEST(CommonShift, IsTheShiftWhoseMeanAnswerIsLongest) {
  for (const Kind kind : {Kind::dot, Kind::l2}) {
    const LayerCase c{
        .kind = kind, .heads = 3, .biases = true, .seed = 3, .n = 32};
    const AttentionWeights weights = test::random_layer(c);
    AttentionOptions options{.kind = kind};
    options.sequences = 2;
    const MultiHeadAttention<double> f(weights, options);
    const Matrix x = gaussian(2 * c.n, c.d, Rng(2));
    const auto J = f.linearize(x);
    const Vector likely = shift_direction(f.common_shift(*J), 2);
    ASSERT_EQ(likely.size(), J->cols());

    for (Index s = 0; s < 2; ++s) {
      // the mean answer to the shift u of sequence s, as a matrix, by columns
      Matrix mean = Matrix::Zero(c.d, c.d);
      for (Index j = 0; j < c.d; ++j) {
        Vector shift = Vector::Zero(J->cols());
        for (Index i = 0; i < c.n; ++i) shift[(s * c.n + i) * c.d + j] = 1.0;
        const Vector dy = J->apply(shift);
        mean.col(j) = unflatten(dy, 2 * c.n, c.d)
                          .middleRows(s * c.n, c.n)
                          .colwise()
                          .mean();
      }
      const auto rows = unflatten(likely, 2 * c.n, c.d);
      const Vector u = rows.row(s * c.n) * std::sqrt(double(c.n));
      EXPECT_NEAR(u.norm(), 1.0, 1e-12);
      EXPECT_LT(
          (rows.middleRows(s * c.n, c.n).rowwise() - rows.row(s * c.n)).norm(),
          1e-12);
      EXPECT_GE((mean * u).norm(), 0.999 * dense_norm(mean).value)
          << name_of(kind);
    }
  }
}

TEST(CommonShift, IsSilentWhereNothingIsKnown) {
  for (const Kind kind : {Kind::l2_untied, Kind::cosine, Kind::sigmoid}) {
    const LayerCase c{.kind = kind, .n = 32};
    const MultiHeadAttention<float> f(test::random_layer(c), {.kind = kind});
    const auto J = f.linearize(test::random_tokens(c).cast<float>());
    EXPECT_FALSE(f.common_shift(*J).effect) << name_of(kind);
  }
}

// Whoever measures a map that begins with attention is told what attention
// knows: alone, behind a residual, scaled, or under a norm; not after one.
TEST(CommonShift, IsThatOfTheAttentionThatReadsTheInput) {
  const LayerCase c{.heads = 2, .n = 32};
  const AttentionWeights weights = test::random_layer(c);
  const MatrixOf<double> x = test::random_tokens(c);
  const auto attention = [&] {
    return MapPtr<double>(std::make_unique<MultiHeadAttention<double>>(
        weights, AttentionOptions{}));
  };
  const auto norm = [&] {
    return MapPtr<double>(std::make_unique<LayerNorm<double>>(
        NormWeights{.gain = Vector::Ones(c.d)}));
  };
  const auto direction = [&](const MapPtr<double>& f) {
    return shift_direction(common_shift_of(*f), *f->linearize(x), x, 1);
  };
  const Vector alone = direction(attention());
  ASSERT_EQ(alone.size(), x.size());
  EXPECT_EQ(direction(residual(attention())), alone);
  EXPECT_EQ(direction(scale(2.0, attention())), alone);
  EXPECT_EQ(direction(compose(norm(), residual(attention()))), alone);
  EXPECT_EQ(direction(compose(attention(), norm())).size(), 0);
  EXPECT_EQ(direction(sum(attention(), attention())).size(), 0);

  // a Jacobian is known by the map that made it
  const MultiHeadAttention<double> one(weights, {}), other(weights, {});
  EXPECT_THROW(one.common_shift(*other.linearize(x)), std::invalid_argument);
}

TEST(MeasuredLayer, LeavesSequencesAloneThatDoNotMove) {
  const LayerCase c{.mask = Mask::causal, .heads = 2, .biases = true};
  AttentionOptions options{.mask = c.mask};
  options.sequences = 3;
  const MultiHeadAttention<double> f(test::random_layer(c), options);
  const auto J = f.linearize(gaussian(3 * c.n, c.d, Rng(2)));
  Vector v = flatten(gaussian(3 * c.n, c.d, Rng(3)));
  const Index size = c.n * c.d;
  const Vector whole = J->apply(v), back = J->apply_adjoint(v);
  v.segment(size, size).setZero();
  const Vector part = J->apply(v), part_back = J->apply_adjoint(v);
  for (const Index s : {0, 2}) {
    EXPECT_LT((part - whole).segment(s * size, size).norm(), 1e-13);
    EXPECT_LT((part_back - back).segment(s * size, size).norm(), 1e-13);
  }
  EXPECT_EQ(part.segment(size, size).norm(), 0.0);
  EXPECT_EQ(part_back.segment(size, size).norm(), 0.0);
  EXPECT_EQ(J->apply(Vector::Zero(3 * size)).norm(), 0.0);
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

}  // namespace measured_test
}  // namespace lipscope
