// Certificates at an input: worked by hand, never below what is measured, and
// close where they are meant to be.

#include "lipscope/theory/certificates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "lipscope/theory/split_paths.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace certificates_test {

using test::norm2;
using test::one_by_one;

Matrix column(std::initializer_list<double> tokens) {
  Matrix x(static_cast<Index>(tokens.size()), 1);
  Index i = 0;
  for (const double t : tokens) x(i++, 0) = t;
  return x;
}

void expect_certificate(const AttentionWeights& w, const Matrix& x,
                        Certificate which, double expected) {
  const Bound b = local_certificate(w, {}, x, which);
  EXPECT_NEAR(b.value, expected, 1e-7 * expected) << b.name;
  EXPECT_GE(b.value, expected) << b.name;
  EXPECT_EQ(b.scope, InputSet::one());
}

TEST(Certificates, FromSizesAreTheFormulasWorkedByHand) {
  // A = 6, V = 5, X = (1, −2): R_A = 12, r = 3, R = 2
  const AttentionWeights w = one_by_one(2, 3, 5);
  const Matrix x = column({1, -2});
  expect_certificate(w, x, Certificate::castin24_data,
                     5 * std::sqrt(3 * (144 * 9 * 3 + 2.0)));
  expect_certificate(w, x, Certificate::castin24_ball,
                     std::sqrt(3 * 25 * (36 * 16 * 9 + 2.0)));
}

TEST(FalseForms, Castin24DataFromOneSideOfA) {
  // A = e_2ᵀe_1, tokens ±10 e_1: x_iA = 0, so that the form with
  // R_A = max|x_iA| says √n, with or without its √3; A Cov_i = 100 e_2ᵀe_1
  AttentionWeights w;
  w.query = (Matrix(2, 1) << 0, 1).finished();
  w.key = (Matrix(2, 1) << 1, 0).finished();
  w.value = Matrix::Identity(2, 2);
  const Matrix x = (Matrix(2, 2) << 10, 0, -10, 0).finished();
  EXPECT_GT(norm2(dense_jacobian(w, {}, x)), 100.0);
  // R_A = |A x_iᵀ| = 10, r = 20
  expect_certificate(w, x, Certificate::castin24_data,
                     std::sqrt(3 * (100 * 400 * 3 + 2.0)));
}

TEST(Certificates, FromWeightsAreTheFormulasWorkedByHand) {
  // A = ln 3, X = (1, 0): P = [¾ ¼; ½ ½], m = (¾, ½), Cov = (3/16, ¼);
  // ‖P‖² = (9/8 + √(1/64 + 1))/2, column sums 5/4 and ¾
  const double a = std::log(3.0);
  const AttentionWeights w = one_by_one(a, 1, 5);
  const Matrix x = column({1, 0});
  const double p = std::sqrt((9.0 / 8 + std::sqrt(1.0 / 64 + 1)) / 2);
  // g₁ = ¾(1 − ¾ + ¼) and ½
  expect_certificate(w, x, Certificate::yudin25_local, 5 * (p + 2 * a * 0.5));
  expect_certificate(
      w, x, Certificate::covariances,
      5 * (a / 4 + p + a * std::sqrt(3.0) / 4 * std::sqrt(1.25)));
  // the J_ij are numbers, all positive: the certificate is ‖J‖ itself
  const Matrix J = 5 * (Matrix(2, 2) << a * 3 / 16 + 0.75 * (1 + a / 4),
                        0.25 * (1 - 0.75 * a), 0.5, a / 4 + 0.5)
                           .finished();
  EXPECT_LT((dense_jacobian(w, {}, x) - J).norm(), 1e-14);
  expect_certificate(w, x, Certificate::token_pairs, norm2(J));
  // value path apart: N_ij = P_ij |w_i||x_j − m_i| + δ_ij A Cov_i, w = (a, 0)
  const Matrix N =
      5 * a *
      (Matrix(2, 2) << 3.0 / 16 + 3.0 / 16, 3.0 / 16, 0, 0.25).finished();
  expect_certificate(w, x, Certificate::split_paths, 5 * p + norm2(N));
}

TEST(Certificates, SeeTheQueryBias) {
  // W_Q = 0, c = ln 3: both rows of P are (¾, ¼), Cov = 3/16, column sum 1.5
  AttentionWeights w = one_by_one(0, 1, 5);
  w.query_bias = Vector::Constant(1, std::log(3.0));
  const Matrix x = column({1, 0});
  const double a = std::log(3.0), p = std::sqrt(20.0 / 16);
  expect_certificate(w, x, Certificate::covariances,
                     5 * (p + a * std::sqrt(3.0) / 4 * std::sqrt(1.5)));
  // N has both rows a·3/16: norm 2a·3/16
  expect_certificate(w, x, Certificate::split_paths, 5 * (p + 2 * a * 3 / 16));
  const LocalCertificates certificates(w, {});
  for (const Certificate which :
       {Certificate::castin24_ball, Certificate::castin24_data,
        Certificate::yudin25_local}) {
    EXPECT_FALSE(certificates.offers(which));
    EXPECT_THROW(certificates.at(x, which), std::invalid_argument);
  }
}

TEST(Certificates, AreExactWhereAllHeadsLookAtOneToken) {
  // 30 tokens, W_Q = 0, no bias: P = 11ᵀ/30 for both heads, no key or query
  // path. The value path is ‖W_V W_O‖ = 7.5, below ‖W_V‖‖W_O‖ = 5·5:
  // W_V = diag(1, 5), W_O = diag(5, 1.5)
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{1.0, 5.0}}.asDiagonal();
  w.output = Vector{{5.0, 1.5}}.asDiagonal();
  const Matrix x = gaussian(30, 2, Rng(1));
  EXPECT_NEAR(local_certificate(w, {}, x, Certificate::split_paths).value, 7.5,
              1e-6);
  // heads side by side: ‖W_V‖
  EXPECT_NEAR(
      local_certificate(w, {.project = false}, x, Certificate::split_paths)
          .value,
      5.0, 1e-6);
}

// the value path of two heads with d = w = 1 and given weights P
double value_path(const Matrix& first, const Matrix& second, double v,
                  std::optional<double> o) {
  LayerParts l;
  l.heads = 2;
  l.k = l.w = 1;
  l.query = l.key = Matrix::Zero(1, 2);
  l.value = (Matrix(1, 2) << 1, v).finished();
  l.projected = o.has_value();
  if (o) l.output = (Matrix(2, 1) << 1, *o).finished();
  LayerAt at;
  at.x = Matrix::Zero(first.rows(), 1);
  at.p = {first, second};
  return value_path_above(l, split_weights(l), at);
}

TEST(SplitCertificate, HasEveryPartOfTheValuePath) {
  // each part alone, where it is exact; n = 24. The shared direction is the
  // constant one, and cancels
  const Index n = 24;
  const Matrix one = Matrix::Identity(n, n);
  Matrix shift = Matrix::Zero(n, n);
  for (Index i = 0; i < n; ++i) shift(i, (i + 1) % n) = 1.0;
  // I − Π for a cyclic shift Π of even length: 2
  EXPECT_NEAR(value_path(one, shift, 1, -1), 2.0, 1e-6);
  // side by side: (I, Π) has norm √2, with v = 2: √5
  EXPECT_NEAR(value_path(one, shift, 1, {}), std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(value_path(one, shift, 2, {}), std::sqrt(5.0), 1e-6);
  // all rows e_1 and all rows e_2: 1(e_1 − e_2)ᵀ has norm √(2n)
  Matrix to_first = Matrix::Zero(n, n), to_second = to_first;
  to_first.col(0).setOnes();
  to_second.col(1).setOnes();
  EXPECT_NEAR(value_path(to_first, to_second, 1, -1), std::sqrt(48.0), 1e-6);
  // and transposed
  EXPECT_NEAR(value_path(to_first.transpose(), to_second.transpose(), -1, 1),
              std::sqrt(48.0), 1e-6);
  // side by side the first is (1e_1ᵀ, 1e_2ᵀ): the columns are apart, norm √n;
  // the second is (e_11ᵀ, e_21ᵀ): √(2n)
  EXPECT_GE(value_path(to_first, to_second, 1, {}), std::sqrt(24.0));
  EXPECT_LE(value_path(to_first, to_second, 1, {}), std::sqrt(48.0) + 1e-6);
  EXPECT_NEAR(value_path(to_first.transpose(), to_second.transpose(), 1, {}),
              std::sqrt(48.0), 1e-6);
  // one direction alone: 11ᵀ/n in both heads, 1 + 3·2
  EXPECT_NEAR(value_path(Matrix::Constant(n, n, 1.0 / n),
                         Matrix::Constant(n, n, 1.0 / n), 3, 2),
              7.0, 1e-6);
}

TEST(Certificates, OfHeadsAddUpAsBoundsDo) {
  // W_Q = 0: castin24_data of each head is √(3n); ‖W_V‖ = 3, 4,
  // W_O = diag(1, 0.1), n = 4
  AttentionWeights w;
  w.heads = 2;
  w.query = Matrix::Zero(2, 2);
  w.key = Matrix::Identity(2, 2);
  w.value = Vector{{3.0, 4.0}}.asDiagonal();
  w.output = Vector{{1.0, 0.1}}.asDiagonal();
  const Matrix x = gaussian(4, 2, Rng(1));
  const auto value = [&](const AttentionOptions& o) {
    return local_certificate(w, o, x, Certificate::castin24_data).value;
  };
  const double root = std::sqrt(12.0);
  EXPECT_NEAR(value({}), root * 3.4, 1e-6);
  EXPECT_NEAR(value({.project = false}), root * 5.0, 1e-6);
  EXPECT_NEAR(value({.heads = {1}}), root * 0.4, 1e-6);
}

TEST(Certificates, RefuseOtherMaps) {
  const AttentionWeights w = one_by_one(1, 1, 1);
  const LocalCertificates sigmoid(w, {.kind = Kind::sigmoid});
  EXPECT_FALSE(sigmoid.offers(Certificate::covariances));
  EXPECT_THROW(sigmoid.at(column({1, 0}), Certificate::covariances),
               std::invalid_argument);
  // one feature cannot be turned; tokens with masses have none
  EXPECT_THROW(LocalCertificates(w, {.rope = Rotary{.theta = 10.0}}),
               std::invalid_argument);
  EXPECT_THROW(LocalCertificates(w, {.log_mass = Vector::Zero(2)}),
               std::invalid_argument);
  EXPECT_THROW(LocalCertificates(w, {.sequences = 2}), std::invalid_argument);
  EXPECT_THROW(LocalCertificates(w, {.heads = {3}}), std::invalid_argument);
  const LocalCertificates c(w, {});
  EXPECT_THROW(c.at(Matrix::Zero(2, 3), Certificate::split_paths),
               std::invalid_argument);
  EXPECT_THROW(c.at(Matrix(0, 1), Certificate::split_paths),
               std::invalid_argument);
  EXPECT_THROW(c.at(column({NAN}), Certificate::split_paths),
               std::invalid_argument);
}

TEST(Certificates, NoInputExceedsThem) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    test::Trial t = test::trial(Kind::dot, seed);
    if (seed % 4 < 2)
      t.x = test::climb(t, test::radius(t.x), 12, Rng(seed).split(50));
    const double reached = norm2(test::jacobian(t));
    const LocalCertificates certificates(t.weights, t.options);
    for (const Certificate which : all_certificates) {
      if (!certificates.offers(which)) continue;
      EXPECT_LE(reached, certificates.at(t.x, which).value)
          << name_of(which) << " seed " << seed;
    }
  }
}

TEST(Certificates, NoLongInputExceedsThem) {
  // enough tokens for the shared direction to be taken out; some of the heads
  // agree on a token, some do not
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const Rng rng(seed);
    test::Trial t;
    const Index H = 1 + seed % 3, d = 4, k = 2, n = 24 + seed % 5;
    t.weights.heads = H;
    t.weights.query = gaussian(d, H * k, rng.split(0));
    t.weights.key = gaussian(d, H * k, rng.split(1));
    t.weights.value = gaussian(d, H * k, rng.split(2));
    if (seed % 4 != 0) t.weights.output = gaussian(H * k, d, rng.split(3));
    if (seed % 2 == 0)
      t.weights.query_bias = 3 * flatten(gaussian(1, H * k, rng.split(4)));
    t.options.mask = seed % 3 == 0 ? Mask::causal : Mask::none;
    t.x = std::exp(rng.split(5).normal()) * gaussian(n, d, rng.split(6));
    const double reached = norm2(test::jacobian(t));
    const LocalCertificates certificates(t.weights, t.options);
    for (const Certificate which : all_certificates) {
      if (!certificates.offers(which)) continue;
      EXPECT_LE(reached, certificates.at(t.x, which).value)
          << name_of(which) << " seed " << seed;
    }
  }
}

TEST(TokenPairs, OfOneHeadAreWithinTwice) {
  double worst = 0.0;
  for (const Index n : {16, 32, 64})
    for (const double size : {0.3, 3.0, 30.0, 300.0}) {
      const Rng rng(static_cast<std::uint64_t>(n) * 1000 +
                    static_cast<std::uint64_t>(10 * size));
      const Index d = 8;
      AttentionWeights w;
      w.query = gaussian(d, d, rng.split(0));
      w.key = gaussian(d, d, rng.split(1));
      w.value = gaussian(d, d, rng.split(2));
      const Matrix x = gaussian(n, d, rng.split(3));
      const double R = test::radius(x);
      const double a =
          norm2(w.query * w.key.transpose()) / std::sqrt(double(d)) * R * R;
      w.query *= size / a;
      const double reached = norm2(dense_jacobian(w, {}, x));
      const double bound =
          local_certificate(w, {}, x, Certificate::token_pairs).value;
      EXPECT_GE(bound, reached);
      worst = std::max(worst, bound / reached);
    }
  std::printf("token_pairs over measured, single heads: at most %.3f\n", worst);
  EXPECT_LT(worst, 2.0);
}

}  // namespace certificates_test
}  // namespace lipscope
