// What is measured for a sequence has the same bits, whichever sequences are
// measured beside it and wherever it stands among them.

#include <gtest/gtest.h>

#include <optional>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/layer_norm.h"
#include "lipscope/spectral/estimate.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace alone_test {

using test::LayerCase;

std::vector<Measurement> measured(const AttentionWeights& weights,
                                  AttentionOptions options, const Matrix& x,
                                  MeasureOptions how, Index sequences) {
  options.sequences = how.sequences = sequences;
  const MultiHeadAttention<float> search(weights, options);
  how.common_shift = common_shift_of(search);
  return measure_norms(search, MultiHeadAttention<double>(weights, options), x,
                       how);
}

void expect_the_same(const Measurement& a, const Measurement& b,
                     const std::string& name) {
  EXPECT_EQ(a.lower, b.lower) << name;
  EXPECT_EQ(a.lower_by, b.lower_by) << name;
  EXPECT_EQ(a.upper, b.upper) << name;
  EXPECT_EQ(a.upper_whp, b.upper_whp) << name;
  EXPECT_EQ(a.residual, b.residual) << name;
  EXPECT_EQ(a.steps, b.steps) << name;
  EXPECT_EQ(a.converged, b.converged) << name;
  EXPECT_TRUE(a.direction == b.direction) << name;
  EXPECT_TRUE(a.image == b.image) << name;
}

// Sequences of different sizes, so that they end at different steps; one is
// there twice.
Matrix tokens(Index n, Index d) {
  Matrix x(5 * n, d);
  for (Index s = 0; s < 4; ++s)
    x.middleRows(s * n, n) =
        (0.5 + 2.0 * static_cast<double>(s)) *
        gaussian(n, d, Rng(17).split(static_cast<std::uint64_t>(s)));
  x.bottomRows(n) = x.topRows(n);
  return x;
}

void expect_each_as_if_alone(const LayerCase& c, AttentionOptions options,
                             const MeasureOptions& how) {
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = tokens(c.n, c.d);
  const std::vector<Measurement> all = measured(weights, options, x, how, 5);
  expect_the_same(all[4], all[0], c.name() + ", first and last");
  for (Index s = 0; s < 4; ++s) {
    const std::vector<Measurement> alone =
        measured(weights, options, x.middleRows(s * c.n, c.n), how, 1);
    expect_the_same(all[s], alone[0],
                    c.name() + ", sequence " + std::to_string(s));
  }
  const std::vector<Measurement> two =
      measured(weights, options, x.middleRows(c.n, 2 * c.n), how, 2);
  expect_the_same(two[1], all[2], c.name() + ", of two");
}

std::vector<LayerCase> some_cases() {
  std::vector<LayerCase> cases;
  for (LayerCase c : test::all_layer_cases())
    if (c.heads >= 3 && c.biases != c.output) {
      c.n = c.heads == 3 ? 7 : 3;
      cases.push_back(c);
    }
  for (const LayerCase& c : test::grouped_and_rotated_cases())
    cases.push_back(c);
  for (const LayerCase& c : test::weighed_cases()) cases.push_back(c);
  for (const LayerCase& c : test::masked_cases()) cases.push_back(c);
  return cases;
}

class EverySequence : public testing::TestWithParam<LayerCase> {};

TEST_P(EverySequence, IsMeasuredAsIfItWereAlone) {
  const LayerCase& c = GetParam();
  const AttentionOptions options = test::options_of(c);
  expect_each_as_if_alone(c, options, {});  // by the dense SVD
  expect_each_as_if_alone(c, options, {.tolerance = 1e-4, .dense_limit = 0});
  // a tolerance that f32 does not reach, and vectors that do not fit
  expect_each_as_if_alone(
      c, options,
      {.tolerance = 1e-9, .max_steps = 40, .dense_limit = 0, .memory = 1});
  // f32 is not enough for an enclosure as close as this one
  expect_each_as_if_alone(
      c, options, {.tolerance = 1e-3, .enclose = 1.00002, .dense_limit = 0});
}

INSTANTIATE_TEST_SUITE_P(Layers, EverySequence,
                         testing::ValuesIn(some_cases()));

// Long enough for a common shift, for products by tiles, and for a step to
// be cut into several pieces.
class LongSequences : public testing::TestWithParam<bool> {};

TEST_P(LongSequences, AreMeasuredAsIfEachWereAlone) {
  std::optional<WithoutTiles> without;
  if (!GetParam()) without.emplace();
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const Mask mask : {Mask::none, Mask::causal}) {
      const LayerCase c{
          .kind = kind, .mask = mask, .heads = 3, .n = 37, .d = 54};
      expect_each_as_if_alone(c, test::options_of(c), {});
      expect_each_as_if_alone(c, test::options_of(c), {.enclose = 1.3});
      AttentionOptions rebuilt = test::options_of(c);
      rebuilt.memory = 1;
      expect_each_as_if_alone(c, rebuilt, {.memory = 10 * 37 * 54 * 4});
    }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutTiles, LongSequences, testing::Bool());

template <class Real>
void expect_each_row_as_if_alone(NormWeights::Kind kind, Index d) {
  NormWeights weights{.kind = kind, .gain = flatten(gaussian(d, 1, Rng(1)))};
  if (kind == NormWeights::Kind::layer)
    weights.bias = flatten(gaussian(d, 1, Rng(2)));
  const LayerNorm<Real> norm(weights);
  const Index rows = 19;
  const MatrixOf<Real> x = gaussian(rows, d, Rng(3)).template cast<Real>();
  const MatrixOf<Real> v = gaussian(rows, d, Rng(4)).template cast<Real>();
  const MatrixOf<Real> y = norm(x);
  const auto J = norm.linearize(x);
  const VectorOf<Real> dy = J->apply(flatten(v));
  const VectorOf<Real> gx = J->apply_adjoint(flatten(v));
  for (Index r = 0; r < rows; ++r) {
    const MatrixOf<Real> one = x.row(r);
    const VectorOf<Real> along = v.row(r);
    const auto j = norm.linearize(one);
    EXPECT_TRUE(norm(one) == y.row(r)) << "row " << r << " of " << d;
    EXPECT_TRUE(j->apply(along) == dy.segment(r * d, d)) << "row " << r;
    EXPECT_TRUE(j->apply_adjoint(along) == gx.segment(r * d, d)) << "row " << r;
  }
}

TEST(LayerNorm, TreatsARowAsIfItWereAlone) {
  for (const auto kind : {NormWeights::Kind::layer, NormWeights::Kind::rms})
    for (const Index d : {1, 8, 37, 100}) {
      expect_each_row_as_if_alone<float>(kind, d);
      expect_each_row_as_if_alone<double>(kind, d);
    }
}

TEST(AttentionMemory, ChangesNoBit) {
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal}) {
      const LayerCase c{
          .kind = kind, .mask = mask, .heads = 3, .n = 70, .d = 24};
      const AttentionWeights weights = test::random_layer(c);
      const AttentionOptions kept = test::options_of(c);
      const Matrix x = test::random_tokens(c);
      const Measurement expected = measured(weights, kept, x, {}, 1)[0];
      // nothing is kept; and queries, keys and values, but not their weights
      for (const std::uint64_t memory : {1, 70 * 72 * 8}) {
        AttentionOptions rebuilt = kept;
        rebuilt.memory = memory;
        expect_the_same(expected, measured(weights, rebuilt, x, {}, 1)[0],
                        c.name());
        EXPECT_TRUE(
            MultiHeadAttention<float>(weights, kept)(x.cast<float>()) ==
            MultiHeadAttention<float>(weights, rebuilt)(x.cast<float>()));
      }
    }
}

// Everything that a Jacobian can be asked for, of every kind of layer; the
// first of two sequences stands still.
TEST_P(EverySequence, HasTheSameBitsWhereHeadsAreMadeAnew) {
  const LayerCase& c = GetParam();
  const AttentionWeights weights = test::random_layer(c);
  AttentionOptions kept = test::options_of(c);
  kept.sequences = 2;
  AttentionOptions rebuilt = kept;
  rebuilt.memory = 1;
  const Matrix x = tokens(c.n, c.d).topRows(2 * c.n);
  const MultiHeadAttention<double> a(weights, kept), b(weights, rebuilt);
  const auto of_a = a.linearize(x), of_b = b.linearize(x);
  Vector v = flatten(gaussian(of_a->cols(), 1, Rng(1)));
  Vector u = flatten(gaussian(of_a->rows(), 1, Rng(2)));
  EXPECT_TRUE(a.tangent_gradient(x, v, u) == b.tangent_gradient(x, v, u));
  for (const bool all : {true, false}) {
    if (!all) {
      v.head(v.size() / 2).setZero();
      u.head(u.size() / 2).setZero();
    }
    EXPECT_TRUE(of_a->apply(v) == of_b->apply(v));
    EXPECT_TRUE(of_a->apply_adjoint(u) == of_b->apply_adjoint(u));
  }
  EXPECT_TRUE(a(x) == b(x));
}

}  // namespace alone_test
}  // namespace lipscope
