// Certificates at an input where features have slopes of their own: rotary
// positions, q/k-norm, shared key heads, sigmoid, L2 and cosine attention; and
// with a bias by distance. Worked by hand, pair by pair against the dense
// Jacobian, and attacked.

#include "lipscope/theory/token_slopes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lipscope/operators/linear_operator.h"
#include "lipscope/theory/certificates.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_pairs.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace token_slopes_test {

using test::norm2;
using test::one_by_one;

constexpr Certificate for_all[] = {
    Certificate::split_paths, Certificate::token_pairs,
    Certificate::leading_apart, Certificate::exact_norm};

Matrix two_tokens(double a, double b) {
  return (Matrix(2, 1) << a, b).finished();
}

double split(const AttentionWeights& w, const AttentionOptions& o,
             const Matrix& x) {
  return local_certificate(w, o, x, Certificate::split_paths).value;
}

void expect_just_above(double found, double expected) {
  EXPECT_GE(found, expected * (1 - 1e-14));
  EXPECT_LE(found, expected * (1 + 1e-7));
}

TEST(TokenSlopes, RotaryPositionsWorkedByHand) {
  // W_Q = 0, b_Q = (c, 0), W_K = I, W_V = e_1, x_1 = (a, 0), x_2 = 0; one
  // plane, turned by 1 from place to place. Logits of x_2 are 0, of x_1 ca/√2
  // in its own row and ca cos(1)/√2 in the other. |w_ij| = c/√2 for every pair,
  // and both |v_j − c_i| times P_ij are a p_i(1 − p_i).
  const double c = 3.0, a = 2.0, s = c * a / std::sqrt(2.0);
  AttentionWeights w;
  w.query = Matrix::Zero(2, 2);
  w.query_bias = Vector{{c, 0.0}};
  w.key = Matrix::Identity(2, 2);
  w.value = (Matrix(2, 1) << 1, 0).finished();
  const Matrix x = (Matrix(2, 2) << a, 0, 0, 0).finished();
  const auto share = [](double t) { return 1 / (1 + std::exp(-t)); };
  const double p = share(s), r = share(s * std::cos(1.0));
  const Matrix P = (Matrix(2, 2) << p, 1 - p, r, 1 - r).finished();
  const double N = s * std::sqrt(2.0) * std::hypot(p * (1 - p), r * (1 - r));
  expect_just_above(split(w, {.rope = Rotary{.theta = 10.0}}, x), norm2(P) + N);
}

TEST(TokenSlopes, SigmoidWorkedByHand) {
  // A = ln 2, X = (1, 0), V = 5: logits ln 2 and 0, less ln 2. P = [½ ⅓; ⅓ ⅓],
  // P' = [¼ 2/9; 2/9 2/9], v = (5, 0), w = (ln 2, 0), C = (5/4, 10/9)
  const double a = std::log(2.0);
  const AttentionWeights w = one_by_one(a, 1, 5);
  const Matrix x = two_tokens(1, 0);
  const AttentionOptions o{.kind = Kind::sigmoid};
  const double P = (5.0 / 6 + std::sqrt(17.0) / 6) / 2;
  expect_just_above(split(w, o, x), 5 * P + 5 * a / 2);
  // with a value bias of −5, v = (0, −5): N_12 = 5a 2/9, C = 0
  AttentionWeights biased = w;
  biased.value_bias = Vector::Constant(1, -5.0);
  expect_just_above(split(biased, o, x), 5 * P + 5 * a * 2 / 9);
}

TEST(TokenSlopes, SigmoidOfVerySmallWeights) {
  // one token 1, q = b_Q = −100, k = 1, W_V = 0, v = 1: J = −100 σ'(−100), and
  // its eighth power is no double
  AttentionWeights w = one_by_one(0, 1, 0);
  w.query_bias = Vector::Constant(1, -100.0);
  w.value_bias = Vector::Ones(1);
  const AttentionOptions o{.kind = Kind::sigmoid};
  EXPECT_GE(split(w, o, Matrix::Ones(1, 1)), 100 * std::exp(-100.0));
}

TEST(TokenSlopes, TiedL2WorkedByHand) {
  // X = (t, 0), t² = ln 3, A = 1, V = 5: P = [¾ ¼; ¼ ¾], w_12 = 2t = −w_21;
  // key and query parts are all 5 t² 3/8
  const double t2 = std::log(3.0);
  AttentionWeights w = test::tied(1, 5);
  w.query_bias = Vector::Constant(1, 7.0);  // not felt
  expect_just_above(split(w, {.kind = Kind::l2}, two_tokens(std::sqrt(t2), 0)),
                    5 * (1 + 0.75 * t2));
}

TEST(TokenSlopes, CosineWorkedByHand) {
  // ε = 3, X = (1, 0): N(x) = (½, 0) with the slopes 3/8 and 1/√3. τ = 4 ln 3:
  // P = [¾ ¼; ½ ½]. ν = 5: v = (5/2, 0), c = (15/8, 5/4)
  const double log3 = std::log(3.0), s[] = {3.0 / 8, 1 / std::sqrt(3.0)};
  const AttentionOptions o{.kind = Kind::cosine,
                           .cosine = {.tau = 4 * log3, .nu = 5, .epsilon = 3}};
  const Matrix value =
      5 * (Matrix(2, 2) << 0.75 * s[0], 0.25 * s[1], 0.5 * s[0], 0.5 * s[1])
              .finished();
  const Matrix N =
      log3 * (Matrix(2, 2) << 0.75 * 2 * s[0] * 5 / 8 + s[0] * 4 * 15 / 64,
              0.25 * 2 * s[1] * 15 / 8, 0, s[1] * 4 * 5 / 16)
                 .finished();
  expect_just_above(split(one_by_one(1, 1, 1), o, two_tokens(1, 0)),
                    norm2(value) + norm2(N));
}

TEST(TokenSlopes, TiedL2CountsTheRoundingOfItsValueWeights) {
  // W_QᵀW_V = (1 + e)(1 − e) − 1 = −e², which products in f64 round to 0
  const double e = std::ldexp(1.0, -30);
  AttentionWeights w;
  w.query = (Matrix(2, 1) << 1 + e, -1).finished();
  w.value = (Matrix(2, 1) << 1 - e, 1).finished();
  const Matrix x = (Matrix(2, 2) << 1, 0, 0, 1).finished();
  const LocalCertificates certificates(w, {.kind = Kind::l2});
  for (const Certificate which : for_all)
    EXPECT_GE(certificates.at(x, which).value, e * e) << name_of(which);
}

TEST(TokenSlopes, QueryKeyNormWorkedByHand) {
  // ε = 3, X = (1, 0): keys (½, 0) with the slopes 3/8 and 1/√3. With a gain of
  // 4 ln 3 queries are (2 ln 3, 0): P = [¾ ¼; ½ ½]. v = (5, 0), c = (15/4, 5/2)
  const double log3 = std::log(3.0), s[] = {3.0 / 8, 1 / std::sqrt(3.0)};
  QueryKeyNorm norm{.query_gain = Vector::Constant(1, 4 * log3),
                    .key_gain = Vector::Ones(1),
                    .epsilon = 3};
  const Matrix P = (Matrix(2, 2) << 0.75, 0.25, 0.5, 0.5).finished();
  const Matrix N =
      log3 * (Matrix(2, 2) << 0.75 * 2 * s[0] * 5 / 4 + s[0] * 4 * 15 / 32,
              0.25 * 2 * s[1] * 15 / 4, 0, s[1] * 4 * 5 / 8)
                 .finished();
  for (const bool over_heads : {false, true}) {
    norm.over_heads = over_heads;
    expect_just_above(
        split(one_by_one(1, 1, 5), {.query_key_norm = norm}, two_tokens(1, 0)),
        5 * norm2(P) + norm2(N));
  }
}

TEST(TokenSlopes, RelativePositionsWorkedByHand) {
  // no query: weights are those of the distances alone
  const RelativeBias bias{
      .table = (Matrix(4, 1) << 0, 0, 7, std::log(3.0)).finished()};
  const Matrix P = (Matrix(2, 2) << 0.25, 0.75, 0.5, 0.5).finished();
  expect_just_above(
      split(one_by_one(0, 1, 5), {.relative_bias = bias}, two_tokens(1, 0)),
      5 * norm2(P));
}

// test::trial with rotary positions for half of the kinds that have them, key
// heads that are shared, q/k-norm and a bias by distance
test::Trial trial(Kind kind, std::uint64_t seed) {
  test::Trial t = test::trial(kind, seed);
  AttentionWeights& w = t.weights;
  const Rng rng = Rng(seed).split(200);
  const Index d = w.features(), H = w.heads;
  const bool tied = kind_of(kind).tied;
  if (kind_of(kind).no_rope.empty() && seed % 2 == 1) {
    const Index k = seed % 3 == 0 ? 4 : 2;
    w.query = gaussian(d, H * k, rng.split(0));
    w.key = gaussian(d, H * k, rng.split(1));
    if (seed % 4 == 1) {
      w.query_bias = 2 * flatten(gaussian(1, H * k, rng.split(2)));
      w.key_bias = 2 * flatten(gaussian(1, H * k, rng.split(3)));
    }
    t.options.rope = Rotary{.theta = std::exp(9 * rng.split(4).uniform())};
  }
  if (H == 2 && seed % 5 < 2) {
    const Index k = w.query_width(), width = w.value.cols() / 2;
    w.key_heads = 1;
    if (!tied) w.key = Matrix(w.key.leftCols(k));
    w.value = Matrix(w.value.leftCols(width));
    if (w.key_bias.size()) w.key_bias = Vector(w.key_bias.head(k));
    if (w.value_bias.size()) w.value_bias = Vector(w.value_bias.head(width));
  }
  if (!tied && seed % 3 == 2) {
    const bool over_heads = seed % 6 == 5 && t.options.heads.empty();
    const Index k = w.query_width();
    const auto gain = [&](Index heads, std::uint64_t number) {
      return flatten(
          gaussian(1, over_heads ? heads * k : k, rng.split(number)));
    };
    t.options.query_key_norm =
        QueryKeyNorm{.query_gain = gain(H, 5),
                     .key_gain = gain(w.groups(), 6),
                     .epsilon = seed % 4 < 2 ? 0.1 : 1e-6,
                     .over_heads = over_heads};
  }
  if (kind_of(kind).shares() && seed % 7 < 2)
    t.options.relative_bias =
        RelativeBias{.table = 2 * gaussian(8, H, rng.split(7)), .furthest = 6};
  return t;
}

bool over_heads(const test::Trial& t) {
  return t.options.query_key_norm && t.options.query_key_norm->over_heads;
}

// the closed form; a norm over heads has none
Matrix dense(const test::Trial& t) {
  if (!over_heads(t)) return test::jacobian(t);
  return materialize(
      *MultiHeadAttention<double>(t.weights, t.options).linearize(t.x));
}

std::string described(const test::Trial& t, std::uint64_t seed) {
  return name_of(t.options.kind) + (t.options.rope ? " rotary" : "") +
         (t.options.query_key_norm ? " normed" : "") +
         (over_heads(t) ? " over heads" : "") +
         (t.options.relative_bias ? " by distance" : "") +
         (t.weights.key_heads == 1 ? " grouped" : "") + " seed " +
         std::to_string(seed);
}

TEST(TokenSlopes, PairsAreThoseOfTheDenseJacobian) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      test::Trial t = trial(kind, seed);
      t.x /= std::max(1.0, test::radius(t.x));  // where rounding is small
      const LayerParts l = layer_parts(t.weights, t.options);
      if (l.plain) continue;
      const Matrix found = token_pair_norms_above(l, layer_at(l, t.x));
      const Matrix J = dense(t);
      const Index n = t.x.rows(), e = J.rows() / n, d = t.x.cols();
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) {
          const double exact = norm2(J.block(i * e, j * d, e, d));
          EXPECT_GE(found(i, j), exact * (1 - 1e-9) - 1e-12)
              << described(t, seed);
          EXPECT_LE(found(i, j), exact * (1 + 1e-6) + 1e-6)
              << described(t, seed);
        }
    }
}

void expect_never_exceeded(const test::Trial& t, const std::string& what) {
  const double reached = norm2(dense(t));
  const LocalCertificates certificates(t.weights, t.options);
  for (const Certificate which : for_all)
    ASSERT_TRUE(certificates.offers(which)) << what;
  if (t.options.query_key_norm || t.options.relative_bias) {
    EXPECT_FALSE(certificates.offers(Certificate::castin24_ball)) << what;
    EXPECT_FALSE(certificates.offers(Certificate::yudin25_local)) << what;
  }
  for (const Certificate which : all_certificates) {
    if (!certificates.offers(which)) continue;
    EXPECT_LE(reached, certificates.at(t.x, which).value * (1 + 1e-9))
        << name_of(which) << " " << what;
  }
}

TEST(TokenSlopes, NoInputExceedsTheCertificates) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      test::Trial t = trial(kind, seed);
      if (seed % 4 < 2 && !over_heads(t))
        t.x = test::climb(t, test::radius(t.x), 12, Rng(seed).split(50));
      expect_never_exceeded(t, described(t, seed));
    }
}

TEST(TokenSlopes, NoLongInputExceedsTheCertificates) {
  // more tokens than a tile of rows has, and than are needed for the shared
  // direction of the values to be taken out
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Rng rng(seed);
      test::Trial t;
      const Index G = 1 + seed % 2, H = 2 * G, d = 4, k = 2, n = 24 + seed;
      AttentionWeights& w = t.weights;
      w.heads = H;
      w.key_heads = seed % 3 == 0 ? G : H;
      w.query = gaussian(d, H * k, rng.split(0));
      if (!kind_of(kind).tied)
        w.key = gaussian(d, w.key_heads * k, rng.split(1));
      w.value = gaussian(d, w.key_heads * k, rng.split(2));
      if (seed % 4 != 0) w.output = gaussian(H * k, 5, rng.split(3));
      t.options.kind = kind;
      t.options.mask = seed % 3 == 1 ? Mask::causal : Mask::none;
      t.options.cosine = {.tau = 5.0, .nu = 2.0, .epsilon = 1e-3};
      if (kind_of(kind).no_rope.empty() && seed % 4 != 3)
        t.options.rope = Rotary{.theta = 100.0};
      if (!kind_of(kind).tied && seed % 4 < 2)
        t.options.query_key_norm = QueryKeyNorm{
            .query_gain =
                flatten(gaussian(1, seed % 4 == 0 ? k : H * k, rng.split(7))),
            .key_gain = flatten(
                gaussian(1, seed % 4 == 0 ? k : w.key_heads * k, rng.split(8))),
            .over_heads = seed % 4 == 1};
      t.x = std::exp(rng.split(5).normal()) * gaussian(n, d, rng.split(6));
      expect_never_exceeded(t, described(t, seed));
    }
}

TEST(TokenSlopes, RotatedPartsOfThePathsAreAboveTheirNorms) {
  // below the diagonal a block of one head is its value part P_ij W_V and its
  // key part
  const Index d = 8, k = 6, n = 40;
  const Rng rng(3);
  AttentionWeights w;
  w.query = gaussian(d, k, rng.split(0));
  w.key = gaussian(d, k, rng.split(1));
  w.value = gaussian(d, 5, rng.split(2));
  const AttentionOptions o{.mask = Mask::causal, .rope = Rotary{.theta = 50.0}};
  const Matrix x = 0.7 * gaussian(n, d, rng.split(3));
  const LayerParts l = layer_parts(w, o);
  const LayerAt at = layer_at(l, x);
  const Matrix found =
      key_path_norms_above(l, split_weights(l), at, centres(l, at));
  const Matrix J = dense_jacobian(w, o, x);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j) {
      const Matrix part =
          J.block(i * 5, j * d, 5, d).transpose() - at.p[0](i, j) * w.value;
      EXPECT_GE(found(i, j), norm2(part) * (1 - 1e-9));
      EXPECT_LE(found(i, j), norm2(part) * (1 + 1e-6) + 1e-6);
    }
}

}  // namespace token_slopes_test
}  // namespace lipscope
