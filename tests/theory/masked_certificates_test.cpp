// Certificates at an input under windows and padding.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/theory/certificates.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_pairs.h"
#include "tests/support/layers.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace masked_certificates_test {

using test::norm2;
using test::one_by_one;

TEST(MaskedCertificates, SeeTheQueryOfPadding) {
  // A = ln 3, X = (1, 0) and padding 1: P = [¾ ¼; ½ ½; ¾ ¼]. The last token
  // does not see itself: all of J_33 is its query's part, A Cov_3 = a·3/16
  const double a = std::log(3.0);
  const AttentionWeights w = one_by_one(a, 1, 5);
  const Matrix x = (Matrix(3, 1) << 1, 0, 1).finished();
  const AttentionOptions padded{.mask = {.padding_after = 1}};
  const Matrix J = 5 * (Matrix(3, 3) << a * 3 / 16 + 0.75 * (1 + a / 4),
                        0.25 * (1 - 0.75 * a), 0,  //
                        0.5, a / 4 + 0.5, 0,       //
                        0.75 * (1 + a / 4), 0.25 * (1 - 0.75 * a), a * 3 / 16)
                           .finished();
  ASSERT_LT((dense_jacobian(w, padded, x) - J).norm(), 1e-14);
  // numbers, all of them positive: the certificate is ‖J‖ itself
  const double pairs =
      local_certificate(w, padded, x, Certificate::token_pairs).value;
  EXPECT_NEAR(pairs, norm2(J), 1e-7 * pairs);
  EXPECT_GE(pairs, norm2(J));
  // value path apart; N_ij = P_ij|w_i||x_j − m_i| + δ_ij A Cov_i
  const Matrix N = 5 * a *
                   (Matrix(3, 3) << 3.0 / 8, 3.0 / 16, 0,  //
                    0, 0.25, 0,                            //
                    3.0 / 16, 3.0 / 16, 3.0 / 16)
                       .finished();
  const Matrix P =
      (Matrix(3, 3) << 0.75, 0.25, 0, 0.5, 0.5, 0, 0.75, 0.25, 0).finished();
  const double split =
      local_certificate(w, padded, x, Certificate::split_paths).value;
  EXPECT_NEAR(split, 5 * norm2(P) + norm2(N), 1e-7 * split);
  // columns sum to 2 and 1, the largest g₁ is ½, ‖X‖² = 2
  EXPECT_NEAR(local_certificate(w, padded, x, Certificate::covariances).value,
              5 * (a / 4 + norm2(P) + a * std::sqrt(3.0) / 4 * std::sqrt(2.0)),
              1e-6);
  EXPECT_NEAR(local_certificate(w, padded, x, Certificate::yudin25_local).value,
              5 * (norm2(P) + 2 * 2 * a * 0.5), 1e-6);
}

TEST(MaskedCertificates, NoInputExceedsThem) {
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      test::Trial t = test::masked_trial(kind, seed);
      Rng dice = Rng(seed).split(201);
      // (a local certificate of L2 attention is there with padding as well)
      t.options.mask = test::draw_mask(Kind::dot, t.x.rows(), dice);
      if (seed % 4 < 2)
        t.x = test::climb(t, test::radius(t.x), 12, Rng(seed).split(50));
      const double reached = norm2(test::jacobian(t));
      const LocalCertificates certificates(t.weights, t.options);
      for (const Certificate which : all_certificates) {
        if (!certificates.offers(which)) continue;
        EXPECT_LE(reached, certificates.at(t.x, which).value * (1 + 1e-9))
            << name_of(which) << " seed " << seed << ", " << name_of(kind)
            << ", " << name_of(t.options.mask);
      }
    }
}

// what the parts between tokens are, for layers of every make and for one head
TEST(MaskedCertificates, TokenPairsAreThoseOfTheDenseJacobian) {
  for (const test::LayerCase& c : test::masked_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const AttentionOptions options = test::options_of(c);
    const Matrix x = test::random_tokens(c);
    const LayerParts parts = layer_parts(w, options);
    const Matrix found = token_pair_norms_above(parts, layer_at(parts, x));
    const Matrix J = dense_jacobian(w, options, x);
    const Index e = J.rows() / c.n;
    for (Index i = 0; i < c.n; ++i)
      for (Index j = 0; j < c.n; ++j) {
        const double exact = norm2(J.block(i * e, j * c.d, e, c.d));
        EXPECT_GE(found(i, j), exact * (1 - 1e-9)) << c.name() << i << j;
        EXPECT_LE(found(i, j), exact * 1.25 + 1e-5) << c.name() << i << j;
      }
  }
}

// tiles of rows whose windows begin in the middle of lanes
TEST(MaskedCertificates, OfManyTokensAreAboveTheJacobianAndNear) {
  double worst_plain = 0.0, worst_masked = 0.0;
  for (const Kind kind : all_kinds)
    for (const Mask& mask :
         {Mask::none, Mask::causal, Mask{.window = 5}, Mask{.window = 19},
          Mask{.hides_later = true, .window = 11}, Mask{.padding_before = 13},
          Mask{.window = 7, .padding_before = 3, .padding_after = 4},
          Mask{.hides_later = true, .padding_after = 20}})
      for (const bool turned : {false, true}) {
        if (turned && kind != Kind::dot) continue;
        test::LayerCase c{.kind = kind,
                          .mask = mask,
                          .heads = 3,
                          .biases = true,
                          .seed = 5,
                          .n = 35,
                          .rope = turned};
        const AttentionWeights w = test::random_layer(c);
        const AttentionOptions options = test::options_of(c);
        const Matrix x = test::random_tokens(c);
        const double reached = norm2(dense_jacobian(w, options, x));
        const double above =
            local_certificate(w, options, x, Certificate::split_paths).value;
        EXPECT_GE(above, reached) << c.name();
        double& worst = mask == Mask::none || mask == Mask::causal
                            ? worst_plain
                            : worst_masked;
        worst = std::max(worst, above / reached);
      }
  std::printf(
      "split_paths over measured: plain masks at most %.3f, others %.3f\n",
      worst_plain, worst_masked);
  EXPECT_LT(worst_masked, 1.2 * worst_plain);
}

}  // namespace masked_certificates_test
}  // namespace lipscope
