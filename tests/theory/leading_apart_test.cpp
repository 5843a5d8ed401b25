// The size of the Gram matrix with its leading directions apart: worked by
// hand, never below a dense decomposition, near it where few directions lead.

#include "lipscope/theory/leading_apart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/settled_scores.h"
#include "lipscope/theory/certificates.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace leading_apart_test {

using test::norm2;
using test::one_by_one;

double above(const AttentionWeights& w, const AttentionOptions& o,
             const Matrix& x) {
  return local_certificate(w, o, x, Certificate::leading_apart).value;
}

// the map of the heads of a layer whose scores are lost in rounding
class Unsettled final : public Map<double> {
 public:
  Matrix operator()(const Matrix& x) const override { return x; }
  std::unique_ptr<LinearOperator<double>> linearize(
      const Matrix&) const override {
    throw TokensTooLarge("scores");
  }
};

// (Σ σ_a⁴)^{1/4}
double size_of_gram(const Matrix& J) {
  return std::sqrt((J * J.transpose()).norm());
}

// what is proved without any direction
double without_directions(const AttentionWeights& w, const AttentionOptions& o,
                          const Matrix& x) {
  const LayerParts l = layer_parts(w, o);
  return leading_apart(l, layer_at(l, x), Unsettled()).value();
}

AttentionWeights layer(Index d, Index H, const Rng& rng) {
  AttentionWeights w;
  w.heads = H;
  w.query = gaussian(d, d, rng.split(0));
  w.key = gaussian(d, d, rng.split(1));
  w.value = gaussian(d, d, rng.split(2));
  w.output = gaussian(d, d, rng.split(3));
  w.query_bias = flatten(gaussian(1, d, rng.split(4)));
  return w;
}

TEST(SplitOff, IsWorkedByHand) {
  const auto above = [](const Matrix& g, const Matrix& v) {
    return split_off_above({v, v * g}, g.norm(), 0.0);
  };
  const Matrix two = Vector{{1.0, 10.0}}.asDiagonal();
  const Matrix first = Matrix::Identity(2, 2).topRows(1);
  // what was not split off counts as it is, ‖C‖_F = 10
  EXPECT_NEAR(above(two, first), 10.0, 1e-9);
  EXPECT_GE(above(two, first), 10.0);
  // a = 3, b = 1, c = 2: the norm of G itself
  const Matrix g = (Matrix(2, 2) << 3, 1, 1, 2).finished();
  EXPECT_NEAR(above(g, first), (5 + std::sqrt(5.0)) / 2, 1e-9);
  // two that lead apart from two that count together: max(7, √(3² + 4²))
  const Matrix four = Vector{{7.0, 6.0, 3.0, 4.0}}.asDiagonal();
  EXPECT_NEAR(above(four, Matrix::Identity(4, 4).topRows(2)), 7.0, 1e-9);
  EXPECT_NEAR(above(four, Matrix::Identity(4, 4).bottomRows(2)),
              std::sqrt(85.0), 1e-9);
  EXPECT_EQ(above(four, Matrix::Ones(2, 4)), INFINITY) << "not orthonormal";
}

TEST(SplitOff, IsNeverBelowWhateverTheDirectionsAre) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Rng rng(seed);
    const Index N = 3 + static_cast<Index>(seed % 9);
    const Index m = 1 + static_cast<Index>(seed % 3);
    const Matrix root = gaussian(N, 1 + N / 2, rng.split(0));
    const Matrix g = root * root.transpose();
    Matrix v = gaussian(m, N, rng.split(1));
    for (Index r = 0; r < m; ++r) {
      for (Index s = 0; s < r; ++s)
        v.row(r) -= v.row(r).dot(v.row(s)) * v.row(s);
      v.row(r).normalize();
    }
    // rows that are orthonormal but for `lean`, and wrong by `wrong`
    const double lean = seed % 2 == 0 ? 0.0 : 1e-3, wrong = lean * g.norm();
    v += lean / std::sqrt(static_cast<double>(m * N)) *
         gaussian(m, N, rng.split(2));
    Matrix w = v * g;
    for (Index r = 0; r < m; ++r)
      w.row(r) += wrong * random_direction(N, rng.split(10 + r)).transpose();
    const double found = split_off_above({v, w}, g.norm(), wrong);
    EXPECT_GE(found, norm2(g) * (1 - 1e-12)) << seed;
  }
}

TEST(LeadingApart, IsWorkedByHand) {
  // A = ln 3, V = 5, X = (1, 0), as in certificates_test.cpp
  const double a = std::log(3.0);
  const Matrix J = 5 * (Matrix(2, 2) << a * 3 / 16 + 0.75 * (1 + a / 4),
                        0.25 * (1 - 0.75 * a), 0.5, a / 4 + 0.5)
                           .finished();
  const AttentionWeights one = one_by_one(a, 1, 5);
  const Matrix x = (Matrix(2, 1) << 1, 0).finished();
  const Bound b = local_certificate(one, {}, x, Certificate::leading_apart);
  EXPECT_EQ(b.name, "leading_apart");
  EXPECT_GE(b.value, norm2(J));
  EXPECT_NEAR(b.value, norm2(J), 1e-6 * norm2(J));
  EXPECT_NEAR(without_directions(one, {}, x), size_of_gram(J), 1e-6);

  // W_Q = 0: P = 11ᵀ/30 in both heads, J is that times W_V W_O = diag(5, 7.5),
  // and of its Gram matrix the eigenvalues are 5² and 7.5²
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{1.0, 5.0}}.asDiagonal();
  w.output = Vector{{5.0, 1.5}}.asDiagonal();
  const Matrix thirty = gaussian(30, 2, Rng(1));
  EXPECT_GE(above(w, {}, thirty), 7.5 * (1 - 1e-12));
  EXPECT_NEAR(above(w, {}, thirty), 7.5, 1e-4);
  EXPECT_NEAR(without_directions(w, {}, thirty),
              std::pow(std::pow(5.0, 4) + std::pow(7.5, 4), 0.25), 1e-3);
}

TEST(LeadingApart, KnowsThatPartsOfARowDoNotAddUp) {
  // all of n tokens look at the first with head 1 and at the second with head
  // 2: ‖J‖ = √n, where the norms of pairs give √(2n)
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.query_bias = Vector::Constant(2, 60.0);
  w.key = w.value = w.output = Matrix::Identity(2, 2);
  Matrix x = Matrix::Zero(9, 2);
  x(0, 0) = x(1, 1) = 1.0;
  EXPECT_NEAR(local_certificate(w, {}, x, Certificate::token_pairs).value,
              std::sqrt(18.0), 1e-6);
  EXPECT_NEAR(above(w, {}, x), 3.0, 1e-4);
  EXPECT_GE(above(w, {}, x), 3.0 * (1 - 1e-12));
}

TEST(LeadingApart, IsNeverBelowADenseDecompositionOfAnyKind) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      const test::Trial t = seed % 3 == 0 ? test::masked_trial(kind, seed)
                                          : test::trial(kind, seed);
      const std::string what = name_of(kind) + " " + std::to_string(seed);
      const double reached = norm2(test::jacobian(t));
      const double found = above(t.weights, t.options, t.x);
      EXPECT_GE(found, reached * (1 - 1e-12)) << what;
      // few rows: all are leading; at logits of thousands rounding has its
      // share
      const double size = test::radius(t.x) * t.weights.query.norm();
      const double room = size > 30.0 ? 1e300 : 1e-3;
      EXPECT_LE(found, reached * (1 + room) + 1e-9) << what;
    }
}

TEST(LeadingApart, IsBetweenTheNormAndTheSizeOfTheGramMatrix) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Rng rng(seed);
    const AttentionWeights w = layer(16, 4, rng);
    const Matrix x = 0.1 * gaussian(24, 16, rng.split(9));
    for (const bool turned : {false, true})
      for (const Mask& mask : {Mask::none, Mask::causal}) {
        AttentionOptions o{.mask = mask};
        if (turned) o.rope = Rotary{.theta = 100.0};
        const Matrix J =
            materialize(*MultiHeadAttention<double>(w, o).linearize(x));
        const double norm = norm2(J), size = size_of_gram(J);
        const double rough = without_directions(w, o, x);
        EXPECT_GE(rough, size * (1 - 1e-12)) << seed;
        EXPECT_LE(rough, size * (1 + 1e-3)) << seed;
        const double found = above(w, o, x);
        EXPECT_GE(found, norm * (1 - 1e-12)) << seed;
        // 128 of 384 directions apart
        EXPECT_LE(found, 1.05 * norm) << seed;
        EXPECT_GT(size, 1.1 * norm) << "nothing to gain: " << seed;
      }
  }
}

TEST(LeadingApart, HasNarrowAndWideAndNoOutputs) {
  const Rng rng(5);
  AttentionWeights w = layer(6, 2, rng);
  const Matrix x = gaussian(12, 6, rng.split(9));
  for (const Index e : {Index{0}, Index{2}, Index{6}, Index{15}}) {
    w.output = e > 0 ? gaussian(6, e, rng.split(10 + e)) : Matrix();
    const double norm = norm2(dense_jacobian(w, {}, x));
    EXPECT_GE(above(w, {}, x), norm * (1 - 1e-12)) << e;
    EXPECT_LE(above(w, {}, x), norm * (1 + 1e-3)) << e;
  }
  // no output at all
  w.output = Matrix::Zero(6, 3);
  EXPECT_LT(above(w, {}, x), 1e-3);
}

TEST(LeadingApart, BandsOfWideOutputsAddUp) {
  // more columns than one band of the triangle has
  const Rng rng(6);
  const AttentionWeights w = layer(130, 2, rng);
  const Matrix x = 0.3 * gaussian(3, 130, rng.split(9));
  const Matrix J = materialize(*MultiHeadAttention<double>(w, {}).linearize(x));
  EXPECT_GE(without_directions(w, {}, x), size_of_gram(J) * (1 - 1e-12));
  EXPECT_LE(without_directions(w, {}, x), size_of_gram(J) * (1 + 2e-3));
  EXPECT_GE(above(w, {}, x), norm2(J) * (1 - 1e-12));
}

TEST(LeadingApart, StandsWhereScoresAreLost) {
  const Rng rng(7);
  const AttentionWeights w = layer(4, 2, rng);
  Matrix x = 1e7 * gaussian(5, 4, rng.split(9));
  x.row(1) = x.row(0);
  const double found = above(w, {}, x);
  EXPECT_TRUE(std::isfinite(found));
  EXPECT_GE(found, norm2(dense_jacobian(w, {}, x)) * (1 - 1e-9));
}

TEST(LeadingApart, SplitsOffDirectionsOfSaturatedWeights) {
  // n = 1, y = σ(a x²)b at x = 1: dy/dx = 2ab σ'(a). P(1 − P) for σ' would lose
  // what 1 − P is near P = 1.
  const double b = 3.0;
  for (int step = 0; step <= 400; ++step) {
    const double a = 10.0 + 0.07 * step;
    AttentionWeights w = one_by_one(a, 1, 0);
    w.value_bias = Vector::Constant(1, b);
    const AttentionOptions o{.kind = Kind::sigmoid};
    const double e = std::exp(-a), exact = 2 * a * b * e / ((1 + e) * (1 + e));
    const Matrix x = Matrix::Ones(1, 1);
    const double applied =
        norm2(materialize(*MultiHeadAttention<double>(w, o).linearize(x)));
    EXPECT_NEAR(applied / exact, 1, 1e-13) << a;
    EXPECT_GE(above(w, o, x), exact) << a;
    EXPECT_LE(above(w, o, x), exact * (1 + 1e-3)) << a;
  }
}

TEST(LeadingApart, IsNeverBelowSaturatedSigmoids) {
  // beside values that are small, and biases of them that are not
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Rng rng(seed);
    AttentionWeights w = layer(3, 3, rng);
    const double logit = 10.0 + 0.15 * static_cast<double>(seed);
    const Matrix x = gaussian(4, 3, rng.split(9)).cwiseAbs();
    w.query = w.query.cwiseAbs() * logit / 3;
    w.key = w.key.cwiseAbs();
    w.value *= std::exp(-logit);
    w.value_bias = flatten(gaussian(1, 3, rng.split(10)));
    const AttentionOptions o{.kind = Kind::sigmoid};
    EXPECT_GE(above(w, o, x), norm2(dense_jacobian(w, o, x)) * (1 - 1e-12))
        << seed;
  }
}

TEST(LeadingApart, IsTheSameOnAnyNumberOfThreads) {
  const Rng rng(3);
  const AttentionWeights w = layer(16, 2, rng);
  const Matrix x = gaussian(30, 16, rng.split(10));
  const double alone = above(w, {.threads = 1}, x);
  EXPECT_EQ(alone, above(w, {.threads = 2}, x));
  EXPECT_EQ(alone, above(w, {.threads = 7}, x));
}

TEST(LeadingApart, SaysHowMuchIsTooMuch) {
  const LocalCertificates one(one_by_one(1, 1, 1), {});
  EXPECT_FALSE(one.too_large(Certificate::leading_apart, 1000));
  const auto much = one.too_large(Certificate::leading_apart, 30000);
  ASSERT_TRUE(much);
  EXPECT_NE(much->find("n = 30000"), much->npos) << *much;
  LayerParts l;  // what the limits are made for
  l.heads = 12;
  for (const auto& [n, width, d] :
       {std::tuple<Index, Index, Index>{256, 32, 384}, {128, 64, 768}}) {
    l.w = width;
    l.value = Matrix(d, 0);
    EXPECT_TRUE(leading_cost(l, n).fits()) << leading_cost(l, n).text();
    EXPECT_FALSE(leading_cost(l, 2 * n).fits())
        << leading_cost(l, 2 * n).text();
  }
}

}  // namespace leading_apart_test
}  // namespace lipscope
