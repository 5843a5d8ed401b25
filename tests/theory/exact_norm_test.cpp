// The norm of J proved by one factorisation: worked by hand, equal to a dense
// decomposition for every kind, mask and position, never below it.

#include "lipscope/theory/exact_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "lipscope/theory/certificates.h"
#include "lipscope/theory/gram_cost.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace exact_norm_test {

using test::norm2;
using test::one_by_one;

double exact(const AttentionWeights& w, const AttentionOptions& o,
             const Matrix& x) {
  return local_certificate(w, o, x, Certificate::exact_norm).value;
}

// not below, and as near as rounding lets it be
void expect_norm(double found, double expected, const std::string& what) {
  EXPECT_GE(found, expected * (1 - 1e-12)) << what;
  EXPECT_LE(found, expected * (1 + 1e-5) + 1e-12) << what;
}

TEST(ExactNorm, IsTheNormWorkedByHand) {
  // A = ln 3, V = 5, X = (1, 0): as in certificates_test.cpp
  const double a = std::log(3.0);
  const Matrix J = 5 * (Matrix(2, 2) << a * 3 / 16 + 0.75 * (1 + a / 4),
                        0.25 * (1 - 0.75 * a), 0.5, a / 4 + 0.5)
                           .finished();
  const Matrix x = (Matrix(2, 1) << 1, 0).finished();
  expect_norm(exact(one_by_one(a, 1, 5), {}, x), norm2(J), "two tokens");
  // Kim21's tokens 0, t, −t at A = V = 1: row 0 of J is 2t²/3 + 1/3 and twice
  // 1/3; a token far out sees itself alone
  const double t = 10.0, r = 2 * t * t / 3 + 1.0 / 3;
  const Matrix far = (Matrix(3, 1) << 0, t, -t).finished();
  const Matrix K =
      (Matrix(3, 3) << r, 1.0 / 3, 1.0 / 3, 0, 1, 0, 0, 0, 1).finished();
  expect_norm(exact(one_by_one(1, 1, 1), {}, far), norm2(K), "far tokens");
  // W_Q = 0: P = 11ᵀ/30 in both heads, and J is that times W_V W_O
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{1.0, 5.0}}.asDiagonal();
  w.output = Vector{{5.0, 1.5}}.asDiagonal();
  const Matrix thirty = gaussian(30, 2, Rng(1));
  expect_norm(exact(w, {}, thirty), 7.5, "two heads");
  expect_norm(exact(w, {.project = false}, thirty), 5.0, "side by side");
  // heads that undo one another: J is 0, and what is said is rounding alone
  w.value = Matrix::Ones(2, 2);
  w.output = (Matrix(2, 1) << 1, -1).finished();
  EXPECT_LT(exact(w, {}, thirty), 1e-5);
}

TEST(ExactNorm, IsThatOfADenseDecompositionForEveryKind) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      const test::Trial t = seed % 3 == 0 ? test::masked_trial(kind, seed)
                                          : test::trial(kind, seed);
      const std::string what = name_of(kind) + " " + std::to_string(seed);
      const double reached = norm2(test::jacobian(t));
      const double found = exact(t.weights, t.options, t.x);
      EXPECT_GE(found, reached * (1 - 1e-12)) << what;
      // at logits of thousands and more rounding has its share
      const double size = test::radius(t.x) * t.weights.query.norm();
      const double room = size > 30.0 ? 1e300 : 1e-4;
      EXPECT_LE(found, reached * (1 + room) + 1e-9) << what;
    }
}

// by the operator: the closed form does not know q/k-norm over heads
double dense_norm_of(const AttentionWeights& w, const AttentionOptions& o,
                     const Matrix& x) {
  return norm2(materialize(*MultiHeadAttention<double>(w, o).linearize(x)));
}

// weights of H heads that share G key heads
AttentionWeights grouped(Index d, Index H, Index G, Index k, Index w, Index e,
                         const Rng& rng) {
  AttentionWeights a;
  a.heads = H;
  a.key_heads = G;
  a.query = gaussian(d, H * k, rng.split(0));
  a.key = gaussian(d, G * k, rng.split(1));
  a.value = gaussian(d, G * w, rng.split(2));
  if (e > 0) a.output = gaussian(H * w, e, rng.split(3));
  a.query_bias = flatten(gaussian(1, H * k, rng.split(4)));
  a.key_bias = flatten(gaussian(1, G * k, rng.split(5)));
  return a;
}

TEST(ExactNorm, KnowsPositionsNormsAndSharedHeads) {
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    const Rng rng(seed);
    // wider and narrower than the heads together, and no projection
    const Index e = seed % 4 == 0 ? 0 : seed % 4 == 1 ? 3 : 9;
    const AttentionWeights w = grouped(5, 4, 2, 2, 2, e, rng);
    AttentionOptions o{.mask = seed % 2 == 0 ? Mask::none : Mask::causal};
    if (seed % 3 != 0) o.rope = Rotary{.theta = 10.0};
    if (seed % 3 != 1) {
      const bool over = seed % 5 < 2;
      o.query_key_norm = QueryKeyNorm{
          .query_gain = flatten(gaussian(1, over ? 8 : 2, rng.split(6))),
          .key_gain = flatten(gaussian(1, over ? 4 : 2, rng.split(7))),
          .epsilon = 1e-3,
          .over_heads = over};
    }
    if (seed % 7 == 0)
      o.relative_bias =
          RelativeBias{.table = gaussian(8, 4, rng.split(8)), .furthest = 6};
    const Matrix x = gaussian(7, 5, rng.split(9));
    expect_norm(exact(w, o, x), dense_norm_of(w, o, x),
                "seed " + std::to_string(seed));
    if (o.query_key_norm && o.query_key_norm->over_heads) continue;
    o.heads = {2};
    expect_norm(exact(w, o, x), dense_norm_of(w, o, x),
                "one head, seed " + std::to_string(seed));
  }
}

TEST(ExactNorm, StandsBesideManyTokensOfFewFeatures) {
  // one column of tiles, and several
  for (const auto& [n, d] : {std::pair<Index, Index>{300, 1}, {150, 3}}) {
    const Rng rng(static_cast<std::uint64_t>(n));
    AttentionWeights w;
    w.query = 2.0 * gaussian(d, d, rng.split(0));
    w.key = gaussian(d, d, rng.split(1));
    w.value = gaussian(d, d, rng.split(2));
    Matrix x = 2.0 * gaussian(n, d, rng.split(3));
    x.row(1) = x.row(0);  // a token twice
    for (const Mask& mask : {Mask::none, Mask::causal})
      expect_norm(exact(w, {.mask = mask}, x),
                  norm2(dense_jacobian(w, {.mask = mask}, x)),
                  std::to_string(n));
  }
}

TEST(ExactNorm, IsTheSameOnAnyNumberOfThreads) {
  const Rng rng(3);
  const AttentionWeights w = grouped(8, 2, 1, 4, 4, 8, rng);
  const Matrix x = gaussian(40, 8, rng.split(10));
  const double alone = exact(w, {.threads = 1}, x);
  EXPECT_EQ(alone, exact(w, {.threads = 2}, x));
  EXPECT_EQ(alone, exact(w, {.threads = 7}, x));
}

TEST(ExactNorm, SaysHowMuchIsTooMuch) {
  AttentionWeights w;
  w.query = w.key = gaussian(4, 4, Rng(1));
  w.value = w.query;
  const LocalCertificates one(w, {});
  EXPECT_FALSE(one.too_large(Certificate::exact_norm, 2000));
  EXPECT_FALSE(one.too_large(Certificate::split_paths, 300000));
  const auto much = one.too_large(Certificate::exact_norm, 6000);
  ASSERT_TRUE(much);
  EXPECT_NE(much->find("24000 rows at n = 6000"), much->npos) << *much;
  EXPECT_THROW(one.at(Matrix::Ones(6000, 4), Certificate::exact_norm),
               std::invalid_argument);
  // 12,288 rows: what the limits are made for
  for (const auto& [n, heads, width, d] :
       {std::tuple<Index, Index, Index, Index>{32, 12, 32, 384},
        {16, 12, 64, 768},
        {192, 1, 64, 768},
        {256, 1, 32, 384}}) {
    LayerParts l;
    l.heads = heads;
    l.w = width;
    l.value = Matrix(d, 0);
    EXPECT_TRUE(exact_cost(l, n).fits()) << exact_cost(l, n).text();
    EXPECT_FALSE(exact_cost(l, 2 * n).fits()) << exact_cost(l, 2 * n).text();
  }
}

}  // namespace exact_norm_test
}  // namespace lipscope
