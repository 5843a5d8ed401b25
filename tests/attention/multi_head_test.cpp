#include "lipscope/attention/multi_head.h"

#include <gtest/gtest.h>

#include "lipscope/attention/dense.h"
#include "lipscope/operators/check.h"
#include "lipscope/operators/compose.h"
#include "tests/support/layers.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace multi_head_test {

using test::LayerCase;

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

class EveryLayer : public testing::TestWithParam<LayerCase> {
 protected:
  const LayerCase& c = GetParam();
  const AttentionWeights weights = test::random_layer(c);
  const MultiHeadAttention<double> f{weights, test::options_of(c)};
  const Matrix x = test::random_tokens(c);
};

TEST_P(EveryLayer, HasTheJacobianOfTheClosedForm) {
  const Matrix exact = dense_jacobian(weights, test::options_of(c), x);
  EXPECT_LT(relative(materialize(*f.linearize(x)), exact), 1e-13) << c.name();

  // tokens of size 100: one-hot rows of P, and squares that nearly cancel
  const Matrix large = test::random_tokens(c, 100.0);
  EXPECT_LT(relative(materialize(*f.linearize(large)),
                     dense_jacobian(weights, test::options_of(c), large)),
            1e-10)
      << c.name();
}

TEST_P(EveryLayer, HasTheAdjointOfItsJacobian) {
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(c.seed)), 1e-14) << c.name();
  // at tokens of size 100 logits reach 10⁴ and round accordingly
  const Matrix large = test::random_tokens(c, 100.0);
  EXPECT_LT(adjoint_defect(*f.linearize(large), Rng(c.seed)), 1e-12)
      << c.name();
}

TEST_P(EveryLayer, HasTheDerivativeOfItsValues) {
  const DerivativeCheck check = check_derivative(f, x, Rng(c.seed));
  EXPECT_LT(check.error, 1e-9) << c.name() << ", step " << check.step;
  EXPECT_GT(check.magnitude, 1e-3) << c.name();
  EXPECT_FALSE(check.identical) << c.name();
}

TEST_P(EveryLayer, IsTheSameInSinglePrecisionUpToRounding) {
  const MultiHeadAttention<float> single(weights, test::options_of(c));
  const Matrix exact = materialize(*f.linearize(x));
  const Matrix rounded =
      materialize(*single.linearize(x.cast<float>())).cast<double>();
  EXPECT_LT(relative(rounded, exact), test::rounding<float>(1000)) << c.name();
  EXPECT_LT(adjoint_defect(*single.linearize(x.cast<float>()), Rng(c.seed)),
            test::rounding<float>(1000));
}

INSTANTIATE_TEST_SUITE_P(Layers, EveryLayer,
                         testing::ValuesIn(test::all_layer_cases()));
INSTANTIATE_TEST_SUITE_P(GroupedAndRotated, EveryLayer,
                         testing::ValuesIn(test::grouped_and_rotated_cases()));
INSTANTIATE_TEST_SUITE_P(Weighed, EveryLayer,
                         testing::ValuesIn(test::weighed_cases()));
INSTANTIATE_TEST_SUITE_P(Masked, EveryLayer,
                         testing::ValuesIn(test::masked_cases()));

TEST(MultiHeadAttention, DerivativeHoldsAtTokensOfSizeOneHundred) {
  // small enough weights that P is not one-hot, so that there is something to
  // see: one-hot attention has a derivative of nothing but its value path
  for (LayerCase c : test::all_layer_cases()) {
    if (c.heads != 2 || !c.output) continue;
    AttentionWeights weights = test::random_layer(c);
    weights.query *= 0.01;
    weights.key *= 0.01;
    const MultiHeadAttention<double> f(weights, test::options_of(c));
    const auto check =
        check_derivative(f, test::random_tokens(c, 100.0), Rng(c.seed));
    EXPECT_LT(check.error, 1e-8) << c.name();
  }
}

TEST(MultiHeadAttention, CausalOutputIgnoresTheFuture) {
  for (const LayerCase& c : test::all_layer_cases()) {
    if (c.mask != Mask::causal) continue;
    const MultiHeadAttention<double> f(test::random_layer(c),
                                       test::options_of(c));
    const Matrix x = test::random_tokens(c);
    Matrix edited = x;
    edited.bottomRows(2) = gaussian(2, c.d, Rng(99));
    // L2 moves its features by their mean, so the past is equal to rounding
    EXPECT_LT((f(x).topRows(3) - f(edited).topRows(3)).norm(), 1e-13)
        << c.name();
    EXPECT_GT((f(x).bottomRows(2) - f(edited).bottomRows(2)).norm(), 1e-3);
  }
}

TEST(MultiHeadAttention, OutputIgnoresWhatTheMaskHides) {
  for (const LayerCase& c : test::masked_cases()) {
    const MultiHeadAttention<double> f(test::random_layer(c),
                                       test::options_of(c));
    const Matrix x = test::random_tokens(c), y = f(x);
    for (Index j = 0; j < c.n; ++j) {
      Matrix edited = x;
      edited.row(j) += gaussian(1, c.d, Rng(99));
      const Matrix moved = f(edited);
      for (Index i = 0; i < c.n; ++i) {
        const TokenRange seen = visible(c.mask, i, c.n);
        const bool acts = i == j || (seen.begin <= j && j < seen.end);
        const double change = (moved.row(i) - y.row(i)).norm();
        // L2 moves its features by their mean: equal to rounding
        if (!acts) {
          EXPECT_LT(change, 1e-13) << c.name() << ": " << i << " " << j;
        } else if (seen.size() > 1 || (seen.begin <= j && j < seen.end)) {
          // (a token that sees only another gives its value, whatever its own
          // query)
          EXPECT_GT(change, 1e-10) << c.name() << ": " << i << " " << j;
        }
      }
    }
  }
}

// Padding rows look at the others with their own queries: their outputs are
// those of tokens that stand elsewhere and see the same.
TEST(MultiHeadAttention, PaddingSeesTheOthersAndNotItself) {
  const LayerCase c{.heads = 2, .biases = true};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const MultiHeadAttention<double> padded(weights,
                                          {.mask = {.padding_after = 2}});
  const MultiHeadAttention<double> told(weights, {.seen = {3, 3, 3, 3, 3}});
  EXPECT_EQ(padded(x), told(x));
  const MultiHeadAttention<double> before(weights,
                                          {.mask = {.padding_before = 2}});
  const Matrix y = before(x.colwise().reverse());
  EXPECT_LT(relative(y.colwise().reverse(), padded(x)), 1e-14);
  const MultiHeadAttention<double> short_one(weights, {});
  EXPECT_LT(relative(padded(x).topRows(3), short_one(x.topRows(3))), 1e-14);
}

TEST(MultiHeadAttention, RefusesAMaskUnderWhichATokenSeesNone) {
  const LayerCase c{.heads = 2};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  for (const Mask& mask :
       {Mask{.window = 0}, Mask{.padding_before = 3, .padding_after = 2},
        Mask{.hides_later = true, .padding_before = 1},
        Mask{.window = 2, .padding_after = 2}})
    EXPECT_THROW(MultiHeadAttention<double>(weights, {.mask = mask})(x),
                 std::invalid_argument)
        << name_of(mask);
}

TEST(MultiHeadAttention, ChosenHeadsAddUpToTheLayer) {
  const LayerCase c{.heads = 3, .biases = true};
  AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const auto jacobian = [&](std::vector<Index> heads) {
    const MultiHeadAttention<double> f(weights, {.heads = std::move(heads)});
    return materialize(*f.linearize(x));
  };
  EXPECT_LT(relative(jacobian({0}) + jacobian({1, 2}), jacobian({})), 1e-13);
  EXPECT_LT(relative(jacobian({2, 0, 1}), jacobian({})), 1e-13);
}

TEST(MultiHeadAttention, ChosenHeadsWithoutProjectionAreItsColumns) {
  const LayerCase c{.heads = 4, .fills = false, .biases = true};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const MultiHeadAttention<double> all(weights, {.project = false});
  const MultiHeadAttention<double> some(weights,
                                        {.heads = {3, 1}, .project = false});
  const Matrix y = all(x), z = some(x);
  ASSERT_EQ(y.cols(), 12);
  ASSERT_EQ(z.cols(), 6);
  EXPECT_LT(relative(z.leftCols(3), y.middleCols(9, 3)), 1e-14);
  EXPECT_LT(relative(z.rightCols(3), y.middleCols(3, 3)), 1e-14);
  const AttentionOptions chosen{.heads = {3, 1}, .project = false};
  EXPECT_LT(relative(materialize(*some.linearize(x)),
                     dense_jacobian(weights, chosen, x)),
            1e-13);
}

TEST(MultiHeadAttention, StackedSequencesDoNotSeeEachOther) {
  std::vector<Mask> masks = test::windowed_and_padded_masks();
  masks.insert(masks.end(), {Mask::none, Mask::causal});
  for (const Kind kind : all_kinds)
    for (const Mask& mask : masks) {
      const LayerCase c{.kind = kind, .mask = mask, .heads = 2, .biases = true};
      const AttentionWeights weights = test::random_layer(c);
      AttentionOptions options = test::options_of(c);
      const auto stacked = batch<double>(
          std::make_unique<MultiHeadAttention<double>>(weights, options), 3);
      options.sequences = 3;
      const MultiHeadAttention<double> f(weights, options);
      const Matrix x = gaussian(15, c.d, Rng(5));
      EXPECT_LT(relative(f(x), (*stacked)(x)), 1e-14);
      EXPECT_LT(relative(materialize(*f.linearize(x)),
                         materialize(*stacked->linearize(x))),
                1e-14);
    }
}

TEST(MultiHeadAttention, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Kind kind : all_kinds) {
    const LayerCase c{.kind = kind, .heads = 4, .n = 301, .d = 520};
    const AttentionWeights weights = test::random_layer(c);
    const MatrixOf<float> x = test::random_tokens(c).cast<float>();
    const VectorOf<float> v = random_direction(x.size(), Rng(3)).cast<float>();
    const auto run = [&](int threads) {
      const MultiHeadAttention<float> f(weights,
                                        {.kind = kind, .threads = threads});
      const auto J = f.linearize(x);
      return J->apply_adjoint(J->apply(v));
    };
    const VectorOf<float> one = run(1);
    EXPECT_EQ(one, run(2));
    EXPECT_EQ(one, run(3));
  }
}

// With W_V = 0 every value is the bias. A mean of equal values does not change,
// whatever the weights do.
TEST(MultiHeadAttention, IsConstantWhereValuesAreTheirBias) {
  for (const Kind kind : all_kinds) {
    if (!kind_of(kind).adds_value_bias_last()) continue;
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const Index n : {7, 40}) {
        const LayerCase c{
            .kind = kind, .mask = mask, .heads = 2, .biases = true, .n = n};
        AttentionWeights weights = test::random_layer(c);
        weights.value.setZero();
        const Matrix x = test::random_tokens(c, 30.0);  // large logits
        const MultiHeadAttention<double> f(weights, test::options_of(c));
        EXPECT_TRUE(materialize(*f.linearize(x)).isZero(0.0)) << c.name();
        const Matrix y = f(x);
        const Matrix expected =
            (weights.value_bias.transpose() * weights.output +
             weights.output_bias.transpose())
                .replicate(n, 1);
        EXPECT_LT(relative(y, expected), 1e-14) << c.name();
        const MultiHeadAttention<float> single(weights, test::options_of(c));
        EXPECT_TRUE(
            materialize(*single.linearize(x.cast<float>())).isZero(0.0f))
            << c.name();
      }
  }
}

TEST(MultiHeadAttention, KeyBiasHasNoEffectOnDotProduct) {
  const LayerCase c{.heads = 2, .biases = true};
  AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const Matrix with = MultiHeadAttention<double>(weights, {})(x);
  weights.key_bias.setZero();
  EXPECT_LT(relative(MultiHeadAttention<double>(weights, {})(x), with), 1e-14);
  weights.query_bias.setZero();
  EXPECT_GT(relative(MultiHeadAttention<double>(weights, {})(x), with), 1e-3);
}

TEST(MultiHeadAttention, QueryBiasCancelsInTiedL2) {
  const LayerCase c{.kind = Kind::l2, .heads = 2, .biases = true};
  AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const AttentionOptions l2{.kind = Kind::l2};
  const Matrix with = MultiHeadAttention<double>(weights, l2)(x);
  weights.query_bias.setZero();
  EXPECT_LT(relative(MultiHeadAttention<double>(weights, l2)(x), with), 1e-13);
}

TEST(MultiHeadAttention, GroupedHeadsAreHeadsWithTheSameKeysAndValues) {
  for (const LayerCase& c : test::grouped_and_rotated_cases()) {
    if (c.key_heads != 2) continue;
    const AttentionWeights grouped = test::random_layer(c);
    AttentionWeights repeated = grouped;
    repeated.key_heads = 0;
    repeated.value.resize(16, 16);
    repeated.value_bias.resize(16);
    if (c.kind != Kind::l2) {
      repeated.key.resize(16, 16);
      repeated.key_bias.resize(16);
    }
    for (const Index h : {0, 1, 2, 3}) {
      const Index from = h < 2 ? 0 : 4;  // heads 0 and 1 share, 2 and 3 share
      repeated.value.middleCols(4 * h, 4) = grouped.value.middleCols(from, 4);
      repeated.value_bias.segment(4 * h, 4) =
          grouped.value_bias.segment(from, 4);
      if (c.kind == Kind::l2) continue;
      repeated.key.middleCols(4 * h, 4) = grouped.key.middleCols(from, 4);
      repeated.key_bias.segment(4 * h, 4) = grouped.key_bias.segment(from, 4);
    }
    AttentionOptions options = test::options_of(c);
    options.heads = {3, 1};
    const Matrix x = test::random_tokens(c);
    EXPECT_LT(relative(MultiHeadAttention<double>(grouped, options)(x),
                       MultiHeadAttention<double>(repeated, options)(x)),
              1e-14)
        << c.name();
  }
}

TEST(MultiHeadAttention, RotatedScoresDependOnDistancesInTheSequence) {
  // two equal tokens in other places: a window that moves along a periodic
  // text sees the same under rotary positions
  LayerCase c{.mask = Mask::none, .heads = 2, .n = 4, .d = 8, .rope = true};
  const AttentionWeights weights = test::random_layer(c);
  const MultiHeadAttention<double> f(weights, test::options_of(c));
  const MultiHeadAttention<double> plain(weights, {});
  const Matrix token = test::random_tokens(c).topRows(1);
  const Matrix other = test::random_tokens(c).bottomRows(1);
  Matrix x(4, 8);
  x << token, other, token, other;
  // unrotated attention cannot tell the two apart; rotated can, without a mask,
  // unless the sequence is stacked as two
  EXPECT_LT((plain(x).row(0) - plain(x).row(2)).norm(), 1e-14);
  EXPECT_GT((f(x).row(0) - f(x).row(2)).norm(), 1e-3);
  AttentionOptions two = test::options_of(c);
  two.sequences = 2;
  const Matrix stacked = MultiHeadAttention<double>(weights, two)(x);
  EXPECT_EQ(stacked.topRows(2), stacked.bottomRows(2));

  // one plane, turned by hand: q = k = (1, 0), so that s_ij = cos(i − j)/√2
  AttentionWeights plane;
  plane.query = plane.key = Matrix::Zero(2, 2);
  plane.query_bias = plane.key_bias = Vector::Unit(2, 0);
  plane.value = Matrix::Identity(2, 2);
  const Matrix y = MultiHeadAttention<double>(
      plane, {.rope = Rotary{.theta = 7.0}})(Matrix::Identity(2, 2));
  const double near = std::exp(1 / std::sqrt(2.0));
  const double far = std::exp(std::cos(1.0) / std::sqrt(2.0));
  EXPECT_NEAR(y(0, 0), near / (near + far), 1e-15);
  EXPECT_NEAR(y(1, 0), far / (near + far), 1e-15);
}

TEST(MultiHeadAttention, WithoutQueriesAttendsUniformly) {
  LayerCase c{.heads = 2};
  AttentionWeights weights = test::random_layer(c);
  weights.query.setZero();
  const Matrix x = test::random_tokens(c);
  const MultiHeadAttention<double> f(weights, {});
  const Matrix mean = x.colwise().mean().replicate(c.n, 1);
  EXPECT_LT(relative(f(x), mean * weights.value * weights.output), 1e-14);
  const MultiHeadAttention<double> masked(weights, {.mask = Mask::causal});
  EXPECT_LT(relative(masked(x).row(1), 0.5 * (x.row(0) + x.row(1)) *
                                           weights.value * weights.output),
            1e-14);
}

TEST(MultiHeadAttention, MassesActAsRepeatedTokens) {
  for (const LayerCase& c : test::weighed_cases()) {
    if (c.mask == Mask::causal) continue;
    const AttentionWeights weights = test::random_layer(c);
    const Matrix x = test::random_tokens(c);
    const MultiHeadAttention<double> plain(weights, {.kind = c.kind});
    const MultiHeadAttention<double> equal(
        weights, {.kind = c.kind, .log_mass = Vector::Constant(c.n, -3.0)});
    EXPECT_LT(relative(equal(x), plain(x)), 1e-14) << c.name();

    // masses 1 … n: token j stands j + 1 times in the sequence
    Vector mass(c.n);
    std::vector<Index> times;
    for (Index j = 0; j < c.n; ++j) {
      mass[j] = static_cast<double>(j + 1);
      times.insert(times.end(), j + 1, j);
    }
    const MultiHeadAttention<double> weighed(
        weights, {.kind = c.kind, .log_mass = mass.array().log()});
    const Matrix once = weighed(x), repeated = plain(x(times, Eigen::all));
    EXPECT_LT(relative(repeated, once(times, Eigen::all)), 1e-13) << c.name();
  }
}

TEST(MultiHeadAttention, TokensSeeWhatTheyAreTold) {
  const LayerCase c{.heads = 2, .biases = true};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const MultiHeadAttention<double> plain(weights, {});
  const MultiHeadAttention<double> causal(weights, {.mask = Mask::causal});
  const MultiHeadAttention<double> told(weights, {.seen = {1, 2, 3, 4, 5}});
  EXPECT_EQ(told(x), causal(x));
  // the last two look at the others and are not looked at
  const MultiHeadAttention<double> looking(weights, {.seen = {3, 3, 3, 3, 3}});
  EXPECT_LT(relative(looking(x).topRows(3), plain(x.topRows(3))), 1e-14);
}

TEST(MultiHeadAttention, RefusesMassesThatDoNotFit) {
  const LayerCase c{.heads = 2};
  const AttentionWeights good = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const auto refuses = [&](const AttentionOptions& o) {
    EXPECT_THROW(MultiHeadAttention<double>(good, o)(x), std::invalid_argument);
  };
  refuses({.log_mass = Vector::Zero(4)});
  refuses({.log_mass = Vector::Constant(5, -INFINITY)});
  refuses({.seen = {1, 2, 3}});
  refuses({.seen = {0, 1, 2, 3, 4}});
  refuses({.seen = {1, 2, 3, 4, 6}});
  refuses({.kind = Kind::sigmoid, .log_mass = Vector::Zero(5)});
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const LayerCase c{.heads = 2};
  const AttentionWeights good = test::random_layer(c);
  const MultiHeadAttention<double> f(good, {});
  EXPECT_THROW(f(Matrix::Zero(3, 11)), std::invalid_argument);
  EXPECT_THROW(f(Matrix(0, 12)), std::invalid_argument);
  EXPECT_THROW(f(Matrix::Constant(3, 12, NAN)), std::invalid_argument);

  const auto refuses = [&](auto spoil) {
    AttentionWeights bad = good;
    spoil(bad);
    EXPECT_THROW(MultiHeadAttention<double>(bad, {}), std::invalid_argument);
  };
  refuses([](AttentionWeights& w) { w.heads = 5; });
  refuses([](AttentionWeights& w) { w.key = Matrix::Zero(12, 10); });
  refuses([](AttentionWeights& w) { w.value = Matrix::Zero(11, 12); });
  refuses([](AttentionWeights& w) { w.output = Matrix::Zero(11, 12); });
  refuses([](AttentionWeights& w) { w.query(3, 4) = INFINITY; });
  refuses([](AttentionWeights& w) { w.value_bias = Vector::Zero(3); });
  refuses([](AttentionWeights& w) { w.key_bias = Vector::Constant(12, NAN); });
  refuses([](AttentionWeights& w) { w.key_heads = 1; });
  refuses([](AttentionWeights& w) { w.key_heads = 4; });
  EXPECT_THROW(
      MultiHeadAttention<double>(good, {.rope = Rotary{.theta = -1.0}}),
      std::invalid_argument);
  AttentionWeights odd = good;
  odd.heads = 4;
  EXPECT_THROW(MultiHeadAttention<double>(odd, {.rope = Rotary{.theta = 1e4}}),
               std::invalid_argument);
  AttentionWeights tied = good;
  tied.key.resize(0, 0);
  EXPECT_NO_THROW(MultiHeadAttention<double>(tied, {.kind = Kind::l2}));
  EXPECT_THROW(MultiHeadAttention<double>(
                   tied, {.kind = Kind::l2, .rope = Rotary{.theta = 1e4}}),
               std::invalid_argument);
  EXPECT_THROW(MultiHeadAttention<double>(good, {.kind = Kind::l2}),
               std::invalid_argument);
  EXPECT_THROW(MultiHeadAttention<double>(good, {.heads = {2}}),
               std::invalid_argument);
  EXPECT_THROW(MultiHeadAttention<double>(good, {.heads = {1, 1}}),
               std::invalid_argument);
}

}  // namespace multi_head_test
}  // namespace lipscope
