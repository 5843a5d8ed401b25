// ‖LᵀT_ii'L‖_F of all pairs from pieces: worked by hand, the sum of the parts
// themselves in f64, and a dense J Jᵀ, within what it says it may be wrong by.

#include "lipscope/theory/gram_by_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/theory/norms.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace gram_by_pieces_test {

using test::one_by_one;

struct Sizes {
  PairsSize pieces;    // times s²
  double exact = 0.0;  // of the parts in f64
};

// a power of two near the largest part, as leading_apart takes it
double scale_of(const GramParts& parts, Index n) {
  double most = 0.0;
  for (Index i = 0; i < n; ++i) most = std::max(most, parts.part(i, i).trace());
  return most > 0.0 ? std::exp2(std::ceil(std::log2(std::sqrt(most)))) : 1.0;
}

Sizes sizes_of(const AttentionWeights& w, const AttentionOptions& o,
               const Matrix& x) {
  const LayerParts l = layer_parts(w, o);
  const LayerAt at = layer_at(l, x);
  GramParts parts(l, at);
  parts.prepare();
  EXPECT_TRUE(parts.one_pull());
  Matrix lower = factor_above(gram_of_rows(l.output));
  const double output = std::max(lower.norm(), 1e-30);
  const Index n = x.rows();
  const double scale = scale_of(parts, n);
  const double square = scale * scale * output * output;
  Sizes out;
  double squares = 0.0;
  for (Index i = 0; i < n; ++i)
    for (Index other = 0; other < n; ++other)
      if (i != other)
        squares +=
            (lower.transpose() * parts.part(i, other) * lower).squaredNorm();
  out.exact = std::sqrt(squares);
  lower /= output;
  out.pieces = size_by_pieces(parts, l, at, lower, Triangle(lower), scale);
  out.pieces.found *= square;
  out.pieces.error *= square;
  return out;
}

// (Σ ‖G_ii'‖_F²)^{1/2}, i ≠ i'
double of_dense_pairs(const AttentionWeights& w, const AttentionOptions& o,
                      const Matrix& x) {
  const Matrix J = dense_jacobian(w, o, x);
  const Matrix G = J * J.transpose();
  const Index e = G.rows() / x.rows();
  double squares = G.squaredNorm();
  for (Index i = 0; i < x.rows(); ++i)
    squares -= G.block(i * e, i * e, e, e).squaredNorm();
  return std::sqrt(std::max(0.0, squares));
}

AttentionWeights layer(Index d, Index H, const Rng& rng) {
  AttentionWeights w;
  w.heads = H;
  w.query = gaussian(d, d, rng.split(0));
  w.key = gaussian(d, d, rng.split(1));
  w.value = gaussian(d, d, rng.split(2));
  w.output = gaussian(d, d, rng.split(3));
  w.query_bias = flatten(gaussian(1, d, rng.split(4)));
  w.key_bias = flatten(gaussian(1, d, rng.split(5)));
  w.value_bias = flatten(gaussian(1, d, rng.split(6)));
  return w;
}

void expect_within(const Sizes& s, const std::string& what) {
  ASSERT_TRUE(std::isfinite(s.exact)) << what;
  if (!(s.pieces.error < INFINITY)) return;  // for the other way
  EXPECT_LE(std::abs(s.pieces.found - s.exact),
            s.pieces.error + 1e-9 * s.exact + 1e-300)
      << what;
}

TEST(GramByPieces, IsWorkedByHand) {
  // A = ln 3, V = 5, X = (1, 0) as in certificates_test.cpp, W_O = 2
  const double a = std::log(3.0);
  const Matrix J = 10 * (Matrix(2, 2) << a * 3 / 16 + 0.75 * (1 + a / 4),
                         0.25 * (1 - 0.75 * a), 0.5, a / 4 + 0.5)
                            .finished();
  AttentionWeights one = one_by_one(a, 1, 5);
  one.output = test::scalar(2);
  const Matrix x = (Matrix(2, 1) << 1, 0).finished();
  const double pair = std::sqrt(2.0) * J.row(0).dot(J.row(1));
  const Sizes s = sizes_of(one, {}, x);
  EXPECT_NEAR(s.exact, pair, 1e-9 * pair);
  EXPECT_NEAR(s.pieces.found, pair, 1e-5 * pair);
  EXPECT_LE(std::abs(s.pieces.found - pair), s.pieces.error);

  // W_Q = 0: P = 11ᵀ/30, and every G_ii' is diag(5², 7.5²)/30
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{1.0, 5.0}}.asDiagonal();
  w.output = Vector{{5.0, 1.5}}.asDiagonal();
  const double all = std::sqrt(30.0 * 29.0) * std::hypot(25.0, 56.25) / 30.0;
  EXPECT_NEAR(sizes_of(w, {}, gaussian(30, 2, Rng(1))).pieces.found, all,
              1e-5 * all);
}

TEST(GramByPieces, IsTheSumOfThePartsForAllMasksAndKindsOfOnePull) {
  int tried = 0;
  for (const Kind kind : {Kind::dot, Kind::sigmoid})
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      const std::string what = name_of(kind) + " " + std::to_string(seed);
      test::Trial t = seed % 3 == 0 ? test::masked_trial(kind, seed)
                                    : test::trial(kind, seed);
      if (t.weights.output.size() == 0 || !t.options.project) continue;
      const LayerParts l = layer_parts(t.weights, t.options);
      if (layer_at(l, t.x).sloped()) continue;
      ++tried;
      const Sizes s = sizes_of(t.weights, t.options, t.x);
      expect_within(s, what);
    }
  EXPECT_GT(tried, 100);
}

TEST(GramByPieces, IsThatOfADenseJacobian) {
  for (std::uint64_t seed = 0; seed < 2; ++seed)
    for (const Kind kind : {Kind::dot, Kind::sigmoid})
      for (const Mask& mask :
           {Mask::none, Mask::causal, Mask{.window = 3},
            Mask{.hides_later = true, .window = 4, .padding_after = 2},
            Mask{.padding_before = 1, .padding_after = 3}}) {
        const Rng rng(seed);
        // heads whose columns end inside bands of 48
        const AttentionWeights w = layer(seed % 2 == 0 ? 60 : 16, 4, rng);
        const Matrix x = 0.3 * gaussian(7, w.query.rows(), rng.split(9));
        const AttentionOptions o{.kind = kind, .mask = mask};
        const std::string what = name_of(kind) + " " + std::to_string(seed);
        const Sizes s = sizes_of(w, o, x);
        expect_within(s, what);
        const double dense = of_dense_pairs(w, o, x);
        EXPECT_NEAR(s.exact, dense, 1e-9 * dense) << what;
        EXPECT_NEAR(s.pieces.found, dense, 1e-5 * dense) << what;
        EXPECT_LE(s.pieces.error, 1e-2 * s.exact) << what;
        EXPECT_GT(s.pieces.error, 1e-8 * s.exact) << what;
      }
}

TEST(GramByPieces, IsWithinItsErrorWhereNumbersAreFarApart) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const Kind kind : {Kind::dot, Kind::sigmoid}) {
      const std::string what = name_of(kind) + " " + std::to_string(seed);
      const Rng rng(seed);
      AttentionWeights w = layer(8, 2, rng);
      Matrix x = gaussian(7, 8, rng.split(9));
      switch (seed % 8) {
        case 0:  // logits of 10⁶
          x *= 300.0;
          break;
        case 1:  // saturated sigmoids
          w.query_bias *= 0.0;
          w.query *= 50.0;
          x.rowwise() = x.row(0).eval();
          x.row(3) *= -1.0;
          break;
        case 2:  // one huge token
          x.row(2) *= 1e5;
          break;
        case 3:  // repeated tokens
          x.bottomRows(6).rowwise() = x.row(0).eval();
          break;
        case 4:  // heads of very different size
          w.value.leftCols(4) *= 1e12;
          w.output.topRows(4) *= 1e-12;
          break;
        case 5:  // pulls that are huge against their steps
          w.key *= 1e8;
          w.value *= 1e-9;
          w.query *= 1e-8;
          break;
        case 6:  // a head without values, one that does not look
          w.value.leftCols(4).setZero();
          w.query.rightCols(4).setZero();
          break;
        case 7:  // numbers that squared are beyond f32
          w.value *= 1e-25;
          w.output *= 1e22;
          break;
      }
      const Sizes s = sizes_of(w, {.kind = kind}, x);
      expect_within(s, what);
    }
}

TEST(GramByPieces, IsTheSameOnAnyNumberOfThreads) {
  const Rng rng(3);
  const AttentionWeights w = layer(60, 4, rng);
  const Matrix x = gaussian(20, 60, rng.split(10));
  const Sizes alone = sizes_of(w, {.threads = 1}, x);
  const Sizes many = sizes_of(w, {.threads = 5}, x);
  EXPECT_EQ(alone.pieces.found, many.pieces.found);
  EXPECT_EQ(alone.pieces.error, many.pieces.error);
}

}  // namespace gram_by_pieces_test
}  // namespace lipscope
