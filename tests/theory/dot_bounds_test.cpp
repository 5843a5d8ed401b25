// Bounds on dot-product attention over a ball: worked by hand, never below what
// is measured, and the false forms that go around.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/softmax.h"
#include "lipscope/theory/castin24.h"
#include "lipscope/theory/column_sums.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace dot_bounds_test {

using test::find;
using test::norm2;
using test::one_by_one;
using test::scalar;

double value(const AttentionWeights& w, const BoundSetting& q,
             const std::string& name) {
  const std::vector<Bound> all = bounds(w, q);
  const Bound* b = find(all, name);
  EXPECT_NE(b, nullptr) << name;
  return b ? b->value : NAN;
}

void expect_close(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-10 * expected);
  EXPECT_GE(found, expected * (1 - 1e-15));
}

TEST(DotBounds, AreTheFormulasWorkedByHand) {
  // A = 2·3 = 6, V = 5
  const AttentionWeights plain = one_by_one(2, 3, 5);
  expect_close(value(plain, {.n = 4, .radius = 2}, "castin24_ball"),
               std::sqrt(3 * 25 * (36 * 16 * 17 + 4.0)));
  // a = 6/4
  const BoundSetting at_half{.n = 4, .radius = 0.5};
  expect_close(value(plain, at_half, "castin24_meanfield"),
               5 * (1 + 4.5) * std::exp(3.0));
  expect_close(value(plain, at_half, "column_sums"),
               5 * (1.5 + 2.5 * std::sqrt(4 / (1 + 3 * std::exp(-3.0)))));

  // with b_Q = 2: c = 6, a_b = 1.5 + 3
  AttentionWeights biased = plain;
  biased.query_bias = Vector::Constant(1, 2.0);
  expect_close(value(biased, at_half, "column_sums"),
               5 * (1.5 + 5.5 * std::sqrt(4 / (1 + 3 * std::exp(-9.0)))));
  expect_close(value(biased, at_half, "column_sums_meanfield"),
               5 * (1.5 + 5.5 * std::exp(4.5)));
  expect_close(value(biased, at_half, "row_sums"), 5 * (1 + 1.5 + 4.5));
}

TEST(DotBounds, UnderACausalMaskWorkedByHand) {
  // b_Q = ½, R = 0.1: a = 0.06, a_b = 0.06 + 0.15
  AttentionWeights w = one_by_one(2, 3, 5);
  w.query_bias = Vector::Constant(1, 0.5);
  const double e = std::exp(0.42), hardy = 5 * (0.06 + 2 * 1.42 * e);
  const double columns =
      5 * (0.06 + 1.21 * std::sqrt(1 + e * std::log1p(3 / e)));
  ASSERT_LT(columns, hardy);
  const BoundSetting few{.mask = Mask::causal, .n = 4, .radius = 0.1};
  expect_close(value(w, few, "column_sums_causal"), columns);
  const BoundSetting many{.mask = Mask::causal, .n = 1000000, .radius = 0.1};
  expect_close(value(w, many, "column_sums_causal"), hardy);
  expect_close(value(w, many, "hardy_meanfield"), hardy);
  // the simpler min(n, e^{2s}(1 + ln n)) is never smaller
  for (const double s : {0.0, 0.3, 2.0, 10.0, 400.0})
    for (const Index n : {1, 2, 10, 1000}) {
      const double sum = largest_column_sum(s, n, Mask::causal).value();
      EXPECT_LE(sum, std::min<double>(n, std::exp(2 * s) * (1 + std::log(n))) *
                         (1 + 1e-12));
      EXPECT_GE(sum,
                largest_column_sum(s, n, Mask::none).value() * (1 - 1e-12));
    }
}

TEST(DotBounds, DivideByTheRootOfTheWidth) {
  // k = 4: A = 2·3/√4, c = 4·3/√4
  AttentionWeights w;
  w.query = (Matrix(1, 4) << 2, 0, 0, 0).finished();
  w.key = (Matrix(1, 4) << 3, 0, 0, 0).finished();
  w.value = scalar(1);
  expect_close(value(w, {.n = 2, .radius = 1}, "castin24_ball"),
               std::sqrt(3 * (9 * 9 + 2.0)));
  w.query_bias = Vector{{4.0, 0.0, 7.0, 0.0}};
  expect_close(value(w, {.n = 2, .radius = 2}, "row_sums"), 1 + 12 + 24);
}

AttentionWeights two_heads(double output) {
  // head h reads feature h: ‖A_h‖ = 1, 2; ‖W_V,h‖ = 3, 4
  AttentionWeights w;
  w.heads = 2;
  w.query = Vector{{1.0, 2.0}}.asDiagonal();
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{3.0, 4.0}}.asDiagonal();
  w.output = Vector{{1.0, output}}.asDiagonal();
  return w;
}

TEST(DotBounds, OfALayerTakeTheSmallerOfSumAndRootOfSquares) {
  // √3(‖A‖²(4·3 + 1) + 3)^{1/2} = √48 and √165 at R = 1, n = 3
  const BoundSetting q{.n = 3, .radius = 1};
  const double first = std::sqrt(48.0), second = std::sqrt(165.0);
  const double squares = std::sqrt(9 * 48.0 + 16 * 165.0);
  ASSERT_LT(2 * squares, 3 * first + 8 * second);
  expect_close(value(two_heads(2), q, "castin24_ball"), 2 * squares);
  ASSERT_LT(3 * first + 0.4 * second, squares);
  expect_close(value(two_heads(0.1), q, "castin24_ball"),
               3 * first + 0.4 * second);

  BoundSetting bare = q;
  bare.project = false;
  expect_close(value(two_heads(2), bare, "castin24_ball"), squares);
  BoundSetting one = q;
  one.heads = {1};
  expect_close(value(two_heads(2), one, "castin24_ball"), 8 * second);
  one.project = false;
  expect_close(value(two_heads(2), one, "castin24_ball"), 4 * second);
}

TEST(DotBounds, UseWhatTheNormLayerLeavesOfTheLogits) {
  // d = 2, γ = (1, 3), β = (½, ¼), W_Q = e_1, W_K = e_2, b_Q = 0.2, V = I.
  // Centred: ΠΓW_Q = (½, −½), ΠΓW_K = (−1.5, 1.5); βW_Q + b_Q = 0.7. D = 2:
  //   spread   2·√½·√4.5 + √2·0.7·√4.5 = 3 + 2.1
  //   pull     (√2·√½·1 + 0.7)·√2·3 = 1.7·√18
  //   diagonal √2·1·√4.5·√2·3 = 6√4.5
  AttentionWeights w;
  w.query = (Matrix(2, 1) << 1, 0).finished();
  w.key = (Matrix(2, 1) << 0, 1).finished();
  w.value = Matrix::Identity(2, 2);
  w.query_bias = Vector::Constant(1, 0.2);
  const NormWeights norm{.gain = Vector{{1.0, 3.0}},
                         .bias = Vector{{0.5, 0.25}}};
  const double R = norm_layer_radius(norm);
  EXPECT_NEAR(R, 3 * std::sqrt(2.0) + std::sqrt(0.3125), 1e-12);
  BoundSetting q{.n = 2, .radius = R, .norm = norm};
  const double pull = 1.7 * std::sqrt(18.0), diagonal = 6 * std::sqrt(4.5);
  expect_close(value(w, q, "column_sums"),
               diagonal + (1 + pull) * std::sqrt(2 / (1 + std::exp(-2 * 5.1))));
  expect_close(value(w, q, "row_sums"), 1 + diagonal + pull);
  // RMSNorm does not centre: ΓW_Q = (1, 0), ΓW_K = (0, 3);
  // spread 2·3 + √2·0.7·3, pull (√2 + 0.7)·√18, diagonal √2·3·√18 = 18
  q.norm->kind = NormWeights::Kind::rms;
  expect_close(value(w, q, "column_sums_meanfield"),
               18 + (1 + (std::sqrt(2.0) + 0.7) * std::sqrt(18.0)) *
                        std::exp(6 + 2.1 * std::sqrt(2.0)));
  // a ball that is smaller than what the norm layer gives wins
  q.radius = 0.01;
  BoundSetting no_norm = q;
  no_norm.norm.reset();
  EXPECT_EQ(value(w, q, "column_sums"), value(w, no_norm, "column_sums"));
}

TEST(DotBounds, WithRopeRestOnLengthsAlone) {
  // ‖W_Q‖R + |b_Q| = 2, ‖W_K‖R + |b_K| = 3.5 at R = ½: diagonal 2·3.5·½,
  // pull 2·3·½, spread 2·3.5
  AttentionWeights w = one_by_one(2, 3, 5);
  w.query_bias = Vector::Constant(1, 1.0);
  w.key_bias = Vector::Constant(1, 2.0);
  BoundSetting q{.n = 3, .radius = 0.5, .rope = true};
  expect_close(value(w, q, "column_sums"),
               5 * (3.5 + 4 * std::sqrt(3 / (1 + 2 * std::exp(-14.0)))));
  const std::vector<Bound> all = bounds(w, q);
  EXPECT_EQ(find(all, "column_sums_meanfield"), nullptr);
  EXPECT_EQ(find(all, "castin24_ball"), nullptr);
  // after a norm layer with γ = 3 (not centred), β = 1: q ≤ 2·3 + |1·2 + 1|,
  // k ≤ 3·3 + |3 + 2|; ρ = 3
  q.norm = NormWeights{.kind = NormWeights::Kind::rms,
                       .gain = Vector::Constant(1, 3.0),
                       .bias = Vector::Ones(1)};
  q.radius = norm_layer_radius(*q.norm);
  expect_close(value(w, q, "row_sums"), 5 * (1 + 2 * 14 * 3 + 9 * 3 * 3.0));
}

// attention with rotated q and k, W_V = I, k = d = 2; token i turned by i·angle
Matrix rope_attention(const AttentionWeights& w, const Matrix& x,
                      double angle) {
  const Index n = x.rows();
  Matrix q = x * w.query, k = x * w.key;
  q.rowwise() += w.query_bias.transpose();
  k.rowwise() += w.key_bias.transpose();
  Matrix s(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const double t = angle * static_cast<double>(j - i);
      const Matrix turn =
          (Matrix(2, 2) << std::cos(t), std::sin(t), -std::sin(t), std::cos(t))
              .finished();
      s(i, j) = (q.row(i) * turn).dot(k.row(j)) / std::sqrt(2.0);
    }
  return softmax_rows(s, Mask::none) * x;
}

TEST(DotBounds, HoldUnderRope) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Rng rng(seed);
    AttentionWeights w;
    w.query = gaussian(2, 2, rng.split(0));
    w.key = gaussian(2, 2, rng.split(1));
    w.value = Matrix::Identity(2, 2);
    w.query_bias = flatten(gaussian(1, 2, rng.split(2)));
    w.key_bias = flatten(gaussian(1, 2, rng.split(3)));
    const Index n = 2 + seed % 4;
    const double angle = rng.split(4).uniform() * 3;
    Matrix x = std::exp(rng.split(6).normal()) * gaussian(n, 2, rng.split(5));
    Matrix J(2 * n, 2 * n);
    for (Index c = 0; c < 2 * n; ++c) {
      Matrix up = x, down = x;
      up.data()[c] += 1e-6;
      down.data()[c] -= 1e-6;
      J.col(c) = flatten(Matrix(
          (rope_attention(w, up, angle) - rope_attention(w, down, angle)) /
          2e-6));
    }
    const double R = test::radius(x);
    EXPECT_LE(norm2(J),
              (1 + 1e-6) *
                  value(w, {.n = n, .radius = R, .rope = true}, "column_sums"));
  }
}

TEST(DotBounds, HoldAfterANormLayer) {
  // tokens zΓ + β with |z| = √D and mean zero, climbed inside that set by
  // drawing many
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Rng rng(seed);
    const Index d = 2 + seed % 3, n = 1 + seed % 5;
    test::Trial t;
    t.weights.query = gaussian(d, 2, rng.split(0));
    t.weights.key = gaussian(d, 2, rng.split(1));
    t.weights.value = gaussian(d, d, rng.split(2));
    if (seed % 2 == 0)
      t.weights.query_bias = flatten(gaussian(1, 2, rng.split(3)));
    t.options.mask = seed % 3 == 0 ? Mask::causal : Mask::none;
    const double size = std::exp(rng.split(4).normal() - 1);
    const bool centred = seed % 4 < 2;
    const NormWeights norm{
        .kind = centred ? NormWeights::Kind::layer : NormWeights::Kind::rms,
        .gain = size * flatten(gaussian(1, d, rng.split(5))),
        .bias = size * flatten(gaussian(1, d, rng.split(6)))};
    t.x = gaussian(n, d, rng.split(7));
    for (Index i = 0; i < n; ++i) {
      if (centred) t.x.row(i).array() -= t.x.row(i).mean();
      t.x.row(i) *= std::sqrt(double(d)) / t.x.row(i).norm();
    }
    t.x = t.x * norm.gain.asDiagonal();
    t.x.rowwise() += norm.bias.transpose();
    BoundSetting q = test::setting_of(t, norm_layer_radius(norm));
    q.norm = norm;
    const Matrix J = test::jacobian(t);
    for (const Bound& b : bounds(t.weights, q))
      EXPECT_LE(test::measured(J, b.norm, n, rng.split(8)),
                b.value * (1 + 1e-12))
          << b.name << " seed " << seed;
  }
}

TEST(DotBounds, WhatDoesNotApplyIsNotOffered) {
  AttentionWeights w = one_by_one(1, 1, 1);
  const auto names = [&](BoundSetting q) {
    std::string all;
    for (const Bound& b : bounds(w, q)) all += b.name + " ";
    return all;
  };
  EXPECT_EQ(
      names({.n = 3, .radius = 1}),
      "castin24_ball castin24_meanfield column_sums column_sums_meanfield "
      "row_sums ");
  EXPECT_EQ(names({.mask = Mask::causal, .n = 3, .radius = 1}),
            "castin24_ball column_sums_causal hardy_meanfield row_sums ");
  w.query_bias = Vector::Ones(1);
  EXPECT_EQ(names({.n = 3, .radius = 1}),
            "column_sums column_sums_meanfield row_sums ");
  // a bias that no key sees is none
  w.key = scalar(0);
  EXPECT_NE(names({.n = 3, .radius = 1}).find("castin24_ball"),
            std::string::npos);
  EXPECT_EQ(names({.kind = Kind::l2_untied, .n = 3}), "");
}

TEST(DotBounds, RefuseWhatMakesNoQuestion) {
  const AttentionWeights w = one_by_one(1, 1, 1);
  EXPECT_THROW(bounds(w, {.n = 0, .radius = 1}), std::invalid_argument);
  EXPECT_THROW(bounds(w, {.n = 1, .radius = 0}), std::invalid_argument);
  EXPECT_THROW(bounds(w, {.n = 1, .radius = -1}), std::invalid_argument);
  EXPECT_THROW(bounds(w, {.n = 1, .radius = INFINITY}), std::invalid_argument);
  EXPECT_THROW(bounds(w, {.heads = {1}, .n = 1, .radius = 1}),
               std::invalid_argument);
  EXPECT_THROW(bounds(w, {.heads = {0, 0}, .n = 1, .radius = 1}),
               std::invalid_argument);
  EXPECT_THROW(bounds(one_by_one(NAN, 1, 1), {.n = 1, .radius = 1}),
               std::invalid_argument);
  EXPECT_THROW(bounds(w, {.n = 1,
                          .radius = 1,
                          .norm = NormWeights{.gain = Vector::Ones(2)}}),
               std::invalid_argument);
}

TEST(DotBounds, BeyondDoubleKeepTheirLogarithm) {
  // a = 10⁴: 10⁴ + (1 + 10⁴)e^{10⁴}
  const std::vector<Bound> all =
      bounds(one_by_one(1, 1, 1), {.n = 2, .radius = 100});
  const Bound* b = find(all, "column_sums_meanfield");
  EXPECT_TRUE(std::isinf(b->value));
  EXPECT_NEAR(b->log10, 1e4 / std::log(10.0) + std::log10(10001.0), 1e-8);
  EXPECT_EQ(best_bound(all, Norm::two)->name, "column_sums");
  EXPECT_EQ(best_bound(all, Norm::token)->name, "row_sums");
  EXPECT_FALSE(best_bound(all, Norm::inf).has_value());
  EXPECT_EQ(b->scope, InputSet::ball(100.0));
}

TEST(OwnBall, IsBelowCastin24OnAGrid) {
  double largest = 0.0;
  std::printf("column_sums / castin24_ball\n%10s", "n \\ a");
  const double sizes[] = {0.0, 0.01, 0.1, 0.3, 1, 3, 10, 100, 1000};
  for (const double a : sizes) std::printf("%8g", a);
  std::printf("\n");
  for (const Index n : {1, 2, 3, 5, 10, 30, 100, 1000, 10000}) {
    std::printf("%10td", n);
    for (const double a : sizes) {
      const double ratio =
          column_sums({a, a, a}, n).value() / castin24_ball(a, 1.0, n).value();
      std::printf("%8.3f", ratio);
      largest = std::max(largest, ratio);
    }
    std::printf("\n");
  }
  EXPECT_LT(largest, 0.78);
}

TEST(OwnMeanfield, HasTheRateOfTheBoundFromBelow) {
  // at γR² = 4, ≥ 165.8 is reached; here 277, castin24 38,752
  EXPECT_NEAR(column_sums_meanfield({4, 4, 4}).value(), 4 + 5 * std::exp(4.0),
              1e-9);
  EXPECT_NEAR(column_sums_meanfield({4, 4, 4}).value(), 277, 0.05);
  EXPECT_NEAR(castin24_meanfield(4, 1).value(), 38752, 2);
}

TEST(FalseForms, Castin24WithAQueryBias) {
  // W_Q = 0, |c| = 5, R = 1, n = 4: measured 6.45, the published form 3.46
  test::Trial t;
  t.weights.query = Matrix::Zero(2, 1);
  t.weights.key = (Matrix(2, 1) << 1, 0).finished();
  t.weights.value = Matrix::Identity(2, 2);
  t.weights.query_bias = Vector::Constant(1, 5.0);
  t.x = (Matrix(4, 2) << 0, 1, 0, 1, 0, -1, 0, -1).finished();
  t.x = test::climb(t, 1.0, 600, Rng(3));
  const double reached = norm2(test::jacobian(t));
  const double quoted = castin24_ball(0.0, 1.0, 4).value();
  EXPECT_NEAR(quoted, 3.4641, 1e-4);
  EXPECT_GT(reached, 6.4);
  EXPECT_EQ(find(bounds(t.weights, {.n = 4, .radius = 1}), "castin24_ball"),
            nullptr);
  EXPECT_GT(value(t.weights, {.n = 4, .radius = 1}, "column_sums"), reached);
}

TEST(FalseForms, TheUnmaskedFormUnderACausalMask) {
  // A = 0: P is the Cesàro matrix; the unmasked n-free form says 1
  const struct {
    Index n;
    double norm;
  } rows[] = {{2, 1.144}, {8, 1.380}, {32, 1.539}, {128, 1.646}};
  const AttentionWeights w = one_by_one(0, 1, 1);
  for (const auto& row : rows) {
    Matrix cesaro = Matrix::Zero(row.n, row.n);
    for (Index i = 0; i < row.n; ++i)
      cesaro.row(i).head(i + 1).setConstant(1.0 / static_cast<double>(i + 1));
    EXPECT_NEAR(norm2(cesaro), row.norm, 6e-4);
    const BoundSetting q{.mask = Mask::causal, .n = row.n, .radius = 1};
    EXPECT_GT(norm2(cesaro), column_sums_meanfield({0, 0, 0}).value());
    EXPECT_LE(norm2(cesaro), value(w, q, "column_sums_causal"));
  }
}

TEST(DotBounds, NoInputExceedsThem) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::Trial t = test::trial(Kind::dot, seed);
    const double R = test::radius(t.x);
    if (seed % 4 < 2) t.x = test::climb(t, R, 12, Rng(seed).split(50));
    const Matrix J = test::jacobian(t);
    for (const Bound& b : bounds(t.weights, test::setting_of(t, R)))
      EXPECT_LE(test::measured(J, b.norm, t.x.rows(), Rng(seed)),
                b.value * (1 + 1e-9))
          << b.name << " seed " << seed;
  }
}

}  // namespace dot_bounds_test
}  // namespace lipscope
