// Norms between pairs of tokens, exact where they count: worked by hand, every
// entry above its part of the Jacobian, nearer with more work.

#include "lipscope/theory/refined_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lipscope/theory/certificates.h"
#include "lipscope/theory/token_pairs.h"
#include "lipscope/theory/token_slopes.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace refined_pairs_test {

using test::norm2;

// two heads of one number each; the second has no values
AttentionWeights beside_nothing(double q, double k, double v) {
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Constant(1, 2, q);
  w.key = Matrix::Constant(1, 2, k);
  w.value = (Matrix(1, 2) << v, 0).finished();
  w.output = Matrix::Ones(2, 1);
  return w;
}

TEST(RefinedPairs, AreTheNormsWorkedByHand) {
  // A = ln 3, V = 5, X = (1, 0): P = [¾ ¼; ½ ½], m = (¾, ½), Cov = (3/16, ¼),
  // and w = (a, 0), as in certificates_test.cpp
  const double a = std::log(3.0);
  const Matrix J = 5 * (Matrix(2, 2) << a * 3 / 16 + 0.75 * (1 + a / 4),
                        0.25 * (1 - 0.75 * a), 0.5, a / 4 + 0.5)
                           .finished();
  const AttentionWeights w = beside_nothing(a, 1, 5);
  const Matrix x = (Matrix(2, 1) << 1, 0).finished();
  const Bound b = local_certificate(w, {}, x, Certificate::refined_pairs);
  EXPECT_NEAR(b.value, norm2(J), 1e-7 * norm2(J));
  EXPECT_GE(b.value, norm2(J));
  EXPECT_EQ(b.name, "refined_pairs");
  // by paths alone: P_ij + P_ij |w_i||x_j − m_i| + δ_ij A Cov_i, times 5
  const Matrix N = 5 * (Matrix(2, 2) << 0.75 + a * 3 / 16 + a * 3 / 16,
                        0.25 + a * 3 / 16, 0.5, 0.5 + a / 4)
                           .finished();
  const LayerParts l = layer_parts(w, {});
  const LayerAt at = layer_at(l, x);
  const Matrix rough = refined_pair_norms_above(l, split_weights(l), at, 0);
  EXPECT_LT((rough - N).norm(), 1e-6);
  EXPECT_GE((rough - N).minCoeff(), -1e-14);
  // with one norm the entry that adds most, the first
  const Matrix one = refined_pair_norms_above(l, split_weights(l), at, 1);
  EXPECT_NEAR(one(0, 0), J(0, 0), 1e-9);
  EXPECT_EQ(one(0, 1), rough(0, 1));
  EXPECT_EQ(one(1, 0), rough(1, 0));
  EXPECT_EQ(one(1, 1), rough(1, 1));
}

TEST(RefinedPairs, KnowThatPartsOfARowDoNotAddUp) {
  // all of n tokens look at the first with head 1 and at the second with head
  // 2: rows of J are (e_1ᵀe_1, e_2ᵀe_2, 0, …), of norm 1, and ‖J‖ = √n. The
  // norms of the pairs are 1, two in a row: √(2n)
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.query_bias = Vector::Constant(2, 60.0);
  w.key = w.value = w.output = Matrix::Identity(2, 2);
  const Index n = 9;
  Matrix x = Matrix::Zero(n, 2);
  x(0, 0) = x(1, 1) = 1.0;
  const double pairs =
      local_certificate(w, {}, x, Certificate::token_pairs).value;
  EXPECT_NEAR(pairs, std::sqrt(18.0), 1e-6);
  const double refined =
      local_certificate(w, {}, x, Certificate::refined_pairs).value;
  EXPECT_NEAR(refined, 3.0, 1e-6);
  EXPECT_GE(refined, 3.0 * (1 - 1e-12));
}

TEST(RefinedPairs, AreAboveEveryPartOfTheJacobian) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 90; ++seed) {
      test::Trial t = seed % 3 == 0 ? test::masked_trial(kind, seed)
                                    : test::trial(kind, seed);
      const LayerParts l = layer_parts(t.weights, t.options);
      const SplitWeights split = split_weights(l);
      const LayerAt at = layer_at(l, t.x);
      const Matrix J = test::jacobian(t);
      const Index n = t.x.rows(), e = J.rows() / n, d = t.x.cols();
      double before = INFINITY;
      for (const Index most : {0, 2, 1000}) {
        const Matrix found = refined_pair_norms_above(l, split, at, most);
        for (Index i = 0; i < n; ++i)
          for (Index j = 0; j < n; ++j) {
            const double exact = norm2(J.block(i * e, j * d, e, d));
            EXPECT_GE(found(i, j) * (1 + at.allowance) + slope_rounding(l, at),
                      exact * (1 - 1e-9) - 1e-12)
                << name_of(kind) << " seed " << seed << " most " << most;
          }
        const double norm = norm2(found);
        EXPECT_LE(norm, before * (1 + 1e-9)) << name_of(kind) << " " << seed;
        before = norm;
      }
    }
}

TEST(RefinedPairs, AreNearerThanSplitPathsAndNearlyTokenPairs) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Rng rng(seed);
    const Index d = 24, H = 4;
    AttentionWeights w;
    w.heads = H;
    w.query = gaussian(d, d, rng.split(0));
    w.key = gaussian(d, d, rng.split(1));
    w.value = gaussian(d, d, rng.split(2));
    w.output = gaussian(d, d, rng.split(3));
    const Matrix x = gaussian(40, d, rng.split(4));
    for (const bool turned : {false, true}) {
      AttentionOptions o;
      if (turned) o.rope = Rotary{.theta = 100.0};
      const LocalCertificates c(w, o);
      const double pairs = c.at(x, Certificate::token_pairs).value;
      const double refined = c.at(x, Certificate::refined_pairs).value;
      EXPECT_LE(refined, c.at(x, Certificate::split_paths).value) << seed;
      EXPECT_LE(refined, 1.02 * pairs) << seed;
      EXPECT_GE(refined, c.at(x, Certificate::exact_norm).value * (1 - 1e-4));
    }
  }
}

TEST(RefinedPairs, AreTheSameOnAnyNumberOfThreads) {
  const Rng rng(5);
  const AttentionWeights w{.query = gaussian(12, 12, rng.split(0)),
                           .key = gaussian(12, 12, rng.split(1)),
                           .value = gaussian(12, 12, rng.split(2)),
                           .output = gaussian(12, 12, rng.split(3)),
                           .heads = 3};
  const Matrix x = gaussian(30, 12, rng.split(4));
  const auto value = [&](int threads) {
    return local_certificate(w, {.threads = threads}, x,
                             Certificate::refined_pairs)
        .value;
  };
  EXPECT_EQ(value(1), value(2));
  EXPECT_EQ(value(1), value(5));
}

}  // namespace refined_pairs_test
}  // namespace lipscope
