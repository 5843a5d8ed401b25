// L2, cosine and sigmoid attention, norm layers, and how constants compose.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/theory/composition.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_diagonal_apart.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/qi23.h"
#include "lipscope/theory/ramapuram24.h"
#include "lipscope/theory/yudin25.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace other_bounds_test {

using test::find;
using test::norm2;
using test::norm_inf;
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

AttentionWeights tied(double q, double v) {
  AttentionWeights w = one_by_one(q, 0, v);
  w.key = Matrix();
  return w;
}

TEST(Kim21, PhiInverseHasItsTestValues) {
  EXPECT_NEAR(kim21_phi_inverse(2), 0.278465, 1e-6);
  EXPECT_NEAR(kim21_phi_inverse(1001), 4.42132, 1e-5);
  EXPECT_EQ(kim21_phi_inverse(1), 0.0);
  for (const Index n : {2, 7, 100, 100000}) {
    const double p = kim21_phi_inverse(n);
    EXPECT_NEAR(p * std::exp(p + 1), static_cast<double>(n - 1), 1e-9 * n);
    EXPECT_GE(p * std::exp(p + 1), static_cast<double>(n - 1) * (1 - 1e-15));
  }
}

TEST(Kim21, InfNormIsTheTableOfTheory) {
  const struct {
    Index n;
    double above;
  } rows[] = {{3, 2.8522},  {5, 3.8713},    {9, 5.1605},    {21, 7.2182},
              {51, 9.5906}, {101, 11.5437}, {501, 16.4525}, {1001, 18.6853}};
  for (const auto& row : rows)
    EXPECT_NEAR(value(tied(1, 1), {.kind = Kind::l2, .n = row.n}, "kim21_inf"),
                row.above, 5.1e-5);
}

// two heads, k = 4, w = 1, d = 1: |W_Q^1| = (1, 2, 0, 0), |W_Q^2| = (0, 0, 3,
// −1)
AttentionWeights two_l2_heads() {
  AttentionWeights w;
  w.heads = 2;
  w.query = (Matrix(1, 8) << 1, 2, 0, 0, 0, 0, 3, -1).finished();
  w.value = (Matrix(1, 2) << 5, 2).finished();
  w.output = (Matrix(2, 3) << 1, 0, 2, 0, 3, -2).finished();
  return w;
}

TEST(Kim21, BoundsOfALayerWorkedByHand) {
  const double p = kim21_phi_inverse(6);
  const BoundSetting q{.kind = Kind::l2, .n = 6};
  // ‖W_Oᵀ‖_inf: largest column sum max(1, 3, 4) = 4. ‖W_Q^h‖_inf = 3, 4 (row),
  // ‖W_Q^hᵀ‖_inf = 2, 3 (largest entry); max product 12; max ‖W_V^hᵀ‖ = 5
  expect_close(value(two_l2_heads(), q, "kim21_inf"),
               (4 * p + 0.5) * 4 * 12 * 5);
  // ‖W_Q^h‖² = 5, 10; Σ‖W_Q‖⁴‖W_V‖² = 25·25 + 100·4; W_OW_Oᵀ = [5 −4; −4 13]:
  // λ = 9 + √(16 + 16)
  const double weights =
      std::sqrt(625.0 + 400.0) * std::sqrt(9 + std::sqrt(32.0));
  expect_close(value(two_l2_heads(), q, "kim21_two"),
               std::sqrt(6.0) / 2 * (4 * p + 1) * weights);
  expect_close(value(two_l2_heads(), q, "l2_diagonal_apart"),
               0.5 * (2 * p + (1 + 2 * p) * std::sqrt(6.0)) * weights);
  expect_close(value(two_l2_heads(), q, "l2_row_sums"),
               0.5 * (4 * p + 1) * weights);
  // Σ‖W_Q^h‖²‖W_V^hW_O^h‖ is 5·5√5 + 10·2√13 = 128.01, above 122.57; with the
  // second head's values 2 → 0.1 and its output ten times as large it is
  // 55.9 + 36.1 = 92.0, below √(625 + 1)·√1301.2 = 902.5
  AttentionWeights uneven = two_l2_heads();
  uneven.value(0, 1) = 0.1;
  uneven.output.row(1) *= 10;
  expect_close(value(uneven, q, "l2_row_sums"),
               0.5 * (4 * p + 1) * (25 * std::sqrt(5.0) + std::sqrt(1300.0)));
  BoundSetting bare = q;
  bare.project = false;
  expect_close(value(two_l2_heads(), bare, "l2_row_sums"),
               0.5 * (4 * p + 1) * std::sqrt(1025.0));
  expect_close(value(two_l2_heads(), bare, "kim21_inf"),
               (4 * p + 0.5) * 12 * 5);
  bare.heads = {0};
  expect_close(value(two_l2_heads(), bare, "kim21_two"),
               std::sqrt(6.0) / 2 * (4 * p + 1) * 5 * 5);
}

TEST(OwnL2Token, IsNearlyReachedInOneDimension) {
  // H = d = 1, weights 1: the token norm is the inf-norm, and the closed form
  // of theory/kim21 reaches 4p − 1 + 2/(p + 1): token 0, half of the others at
  // each of ±√(p + 1)
  const Index n = 101;
  const double p = kim21_phi_inverse(n);
  Matrix x(n, 1);
  for (Index i = 0; i < n; ++i)
    x(i, 0) = i == 0 ? 0.0 : (i % 2 == 0 ? 1 : -1) * std::sqrt(p + 1);
  const double reached = test::token_norm_below(
      dense_jacobian(tied(1, 1), {.kind = Kind::l2}, x), n, Rng(3));
  const double bound =
      value(tied(1, 1), {.kind = Kind::l2, .n = n}, "l2_row_sums");
  EXPECT_NEAR(reached, 4 * p - 1 + 2 / (p + 1), 1e-9);
  EXPECT_LE(reached, bound);
  EXPECT_GT(reached, 0.85 * bound);
}

TEST(L2Kernel, BoundsWorkedByHand) {
  // one token: nothing but itself. Two: p = 0.2784645 is also the most that t
  // ln(1/t − 1) can be, and a column sums to √2 at most, or 3/2 when masked
  EXPECT_NEAR(l2_kernel(1, Mask::none).value(), 1.0, 1e-12);
  EXPECT_NEAR(l2_kernel(1, Mask::causal).value(), 1.0, 1e-12);
  const double p2 = 0.27846454276107;
  EXPECT_NEAR(l2_kernel(2, Mask::none).value(), 4 * p2 + std::pow(2, 0.25),
              1e-6);
  EXPECT_NEAR(l2_kernel(2, Mask::causal).value(), 4 * p2 + std::sqrt(1.5),
              1e-6);
  // 101: columns √101, or √202 when masked; the mean over the others 1/10, and
  // √2/10: g = 0.1 ln 9, and 0.1 √2 ln(10/√2 − 1)
  const double p = kim21_phi_inverse(101);
  expect_close(l2_kernel(101, Mask::none).value(),
               2 * p + std::pow(101, 0.25) +
                   2 * std::sqrt(p * 100 * 0.1 * std::log(9.0)));
  const double t = std::sqrt(2.0) / 10;
  expect_close(l2_kernel(101, Mask::causal).value(),
               2 * p + std::pow(202, 0.25) +
                   2 * std::sqrt(p * 100 * t * std::log(1 / t - 1)));
  // |W_Q^h|² = 5, 10; ‖U_h‖_F = √5·5·√5 and √10·2·√13; t_h² their ratios to
  // |W_Q^h|. ‖[t W_Q]‖² = 5t₁² + 10t₂²; U = q_h ⊗ v_h o_h, o_1·o_2 = −4, so
  // that UUᵀ has the eigenvalues of [625/t₁² c; c 520/t₂²], c =
  // −4·√5·5·√10·2/(t₁t₂)
  const double s1 = 25 / std::sqrt(5.0), s2 = 2 * std::sqrt(13.0);  // t²
  const double a = 625 / s1, b = 520 / s2;
  const double c =
      4 * std::sqrt(5.0) * 5 * std::sqrt(10.0) * 2 / std::sqrt(s1 * s2);
  const double u = (a + b) / 2 + std::sqrt((a - b) * (a - b) / 4 + c * c);
  const BoundSetting q{.kind = Kind::l2, .n = 6};
  expect_close(value(two_l2_heads(), q, "l2_kernel"),
               l2_kernel(6, Mask::none).value() / 2 *
                   std::sqrt(5 * s1 + 10 * s2) * std::sqrt(u));
  // without W_O the heads stand apart: ‖U_h‖ = |q_h|v_h, t_h² = v_h, so that
  // ‖[t W_Q]‖² = 5·5 + 10·2 and ‖U‖ = max(√5·√5, √10·√2)
  BoundSetting bare = q;
  bare.project = false;
  expect_close(
      value(two_l2_heads(), bare, "l2_kernel"),
      l2_kernel(6, Mask::none).value() / 2 *
          std::min(std::sqrt(1025.0), std::sqrt(15.0) * std::sqrt(5.0) * 5));
}

TEST(L2Kernel, IsNearWhatIsReachedAndBelowTheOthers) {
  // m tokens at one place and m² around it, e^{-r²} = 1/m, all apart: the norm
  // of P alone is √m/3, as n^{1/4}
  const Index m = 4, around = m * m, n = m + around;
  AttentionWeights w;
  w.query = w.value = Matrix::Identity(around, around);
  // |q − q'|²/√k: k^{1/4} r at which it is r²
  const double r = std::sqrt(std::log(double(m))) * std::pow(around, 0.25);
  Matrix x = Matrix::Zero(n, around);
  x.bottomRows(around) = r * Matrix::Identity(around, around);
  const double root_k = std::sqrt(double(around));
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const double reached =
        root_k * norm2(dense_jacobian(w, {.kind = Kind::l2, .mask = mask}, x));
    const double above =
        root_k *
        value(w, {.kind = Kind::l2, .mask = mask, .n = n}, "l2_kernel");
    EXPECT_LT(reached, above);
    EXPECT_GT(reached, 0.1 * above);
  }
  for (const Index tokens : {1, 2, 3, 10, 100, 10000})
    for (const Mask mask : {Mask::none, Mask::causal})
      EXPECT_LE(
          l2_kernel(tokens, mask).value(),
          l2_diagonal_apart(kim21_phi_inverse(tokens), tokens, 1).value() *
              (1 + 1e-12))
          << tokens;
}

TEST(FalseForms, L2WithTheSquareOfTheQueryNorm) {
  // H = d = 1, n = 2, W_Q = 4: 24.1 is reached; with ‖W_Q‖² in place of ‖W_Q‖⁴
  // the bound would say √2(4p + 1)·4 = 11.96
  const double p = kim21_phi_inverse(2);
  const double quoted = std::sqrt(2.0) * (4 * p + 1) * 4;
  EXPECT_NEAR(quoted, 11.96, 0.005);
  double reached = 0.0;
  for (double t = 0.001; t < 2; t += 0.001) {
    const Matrix x = (Matrix(2, 1) << 0, t).finished();
    reached = std::max(
        reached, norm2(dense_jacobian(tied(4, 1), {.kind = Kind::l2}, x)));
  }
  EXPECT_GT(reached, 24.1);
  EXPECT_LT(reached,
            value(tied(4, 1), {.kind = Kind::l2, .n = 2}, "l2_diagonal_apart"));
  const double kernel =
      value(tied(4, 1), {.kind = Kind::l2, .n = 2}, "l2_kernel");
  EXPECT_LT(reached, kernel);
  EXPECT_GT(reached, 0.6 * kernel);
}

TEST(Cosine, BoundsWorkedByHand) {
  // ‖W_Q‖, ‖W_K‖, ‖W_V‖ = 2, 3, 5; τ = 7, ν = 11, ε = ¼; n = 3; W_O = 2
  AttentionWeights w = one_by_one(2, 3, 5);
  w.output = scalar(2);
  BoundSetting q{.kind = Kind::cosine, .n = 3};
  q.cosine = {.tau = 7, .nu = 11, .epsilon = 0.25};
  expect_close(value(w, q, "qi23_cosine"),
               2 * 22.0 * (9 * 7 * 3 + 3 * 7 * 2 + 2 * 3 * 5));
  expect_close(
      value(w, q, "cosine_column_sums"),
      2 * 22 *
          (7 * 2 + std::sqrt(3 / (1 + 2 * std::exp(-14.0))) * (7 * 3 + 5)));
}

TEST(Sigmoid, BoundsWorkedByHand) {
  // A = 6, V = 5, R = ½, n = 3: logits to 1.5 ≥ ln 3, so sup σ' = ¼
  const auto sigma = [](double t) { return 1 / (1 + std::exp(-t)); };
  AttentionWeights w = one_by_one(2, 3, 5);
  BoundSetting q{.kind = Kind::sigmoid, .n = 3, .radius = 0.5};
  expect_close(value(w, q, "ramapuram24_ball"),
               3 * 5 * (sigma(1.5 - std::log(3.0)) + 2 * 6 * 0.25 * 0.25));
  // R = 0.1: logits to 0.06 < ln 3
  q.radius = 0.1;
  const double s = sigma(0.06 - std::log(3.0));
  EXPECT_NEAR(value(w, q, "ramapuram24_ball"),
              3 * 5 * (s + 2 * 0.06 * s * (1 - s)), 1e-9);
  // b_Q = 1, b_K = 2, b_V = 4: c = 3, c' = 4, b_Q b_K = 2:
  // logits to 0.06 + 0.7 + 2; (2·6·0.1 + 7)(5·0.1 + 4)/4
  w.query_bias = Vector::Constant(1, 1.0);
  w.key_bias = Vector::Constant(1, 2.0);
  w.value_bias = Vector::Constant(1, 4.0);
  EXPECT_NEAR(value(w, q, "ramapuram24_ball"),
              3 * (5 * sigma(2.76 - std::log(3.0)) + 8.2 * 4.5 / 4), 1e-9);
  w.output = scalar(2);
  EXPECT_NEAR(value(w, q, "ramapuram24_ball"),
              6 * (5 * sigma(2.76 - std::log(3.0)) + 8.2 * 4.5 / 4), 1e-9);
}

TEST(Yudin25, G1) {
  // ½(1 − ½ + 0.3); and at most ½
  EXPECT_NEAR(yudin25_g1(Vector{{0.2, 0.5, 0.3}}), 0.4, 1e-12);
  EXPECT_NEAR(yudin25_g1(Vector{{0.5, 0.5}}), 0.5, 1e-12);
  EXPECT_NEAR(yudin25_g1(Vector{{1.0}}), 0.0, 1e-12);
  EXPECT_NEAR(yudin25_local(2, 3, 5, 0.25).value(), 2 + 2 * 9 * 5 * 0.25,
              1e-12);
}

TEST(FalseForms, SoftmaxIsNotAQuarterLipschitz) {
  // diag(p) − ppᵀ at p = (½, ½) has norm ½ [Nair25]
  const Vector p = Vector{{0.5, 0.5}};
  const Matrix J = Matrix(p.asDiagonal()) - p * p.transpose();
  EXPECT_NEAR(norm2(J), 0.5, 1e-15);
}

Matrix layer_norm_jacobian(const NormWeights& norm, const Vector& x) {
  const Index D = x.size();
  const double d = static_cast<double>(D);
  const Vector z = x.array() - x.mean();
  const double s2 = z.squaredNorm() / d + norm.epsilon;
  const Matrix inner = Matrix::Identity(D, D) - Matrix::Ones(D, D) / d -
                       z * z.transpose() / (d * s2);
  return norm.gain.asDiagonal() * inner / std::sqrt(s2);
}

TEST(LayerNorm, BoundsHoldAndAreNearlyReached) {
  const NormWeights norm{.gain = Vector{{1.0, -3.0, 2.0, 0.5}},
                         .epsilon = 0.25};
  expect_close(norm_layer_everywhere(norm).value(), 3 / 0.5);
  expect_close(norm_layer_local(norm, 2.0).value(), 3 / 1.5);
  expect_close(layer_norm_everywhere_inf(norm).value(),
               (2 + std::sqrt(3.0) / std::pow(3.0, 1.5)) * 6);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const double size = std::exp(3 * Rng(seed).split(1).normal());
    const Vector x = size * flatten(gaussian(1, 4, Rng(seed)));
    const Matrix J = layer_norm_jacobian(norm, x);
    const double variance = (x.array() - x.mean()).square().mean();
    EXPECT_LE(norm2(J), norm_layer_local(norm, variance).value() * (1 + 1e-12));
    EXPECT_LE(norm_inf(J), layer_norm_everywhere_inf(norm).value());
  }
}

TEST(FalseForms, LayerNormInTheInfNorm) {
  // σ² = 2ε, z_1² = half of |z|², the rest equal and of both signs
  for (const Index D : {256, 512}) {
    const double d = static_cast<double>(D);
    const NormWeights norm{.gain = Vector::Ones(D), .epsilon = 1e-5};
    Vector x = Vector::Constant(D, 1.0);
    for (Index i = 1; i < D; i += 2) x[i] = -1.0;
    x[0] = std::sqrt(d - 1.0);
    const Vector z = x.array() - x.mean();
    x *= std::sqrt(2e-5 * d / z.squaredNorm());
    const double reached = norm_inf(layer_norm_jacobian(norm, x));
    const double quoted = 2 * (d - 1) / d / std::sqrt(1e-5);
    EXPECT_GT(reached, quoted);
    EXPECT_LT(reached, layer_norm_everywhere_inf(norm).value());
    EXPECT_GT(reached, 0.65 * layer_norm_everywhere_inf(norm).value());
  }
}

TEST(Composition, OfBlocks) {
  expect_close(mlp_bound(2, 3, Activation::relu).value(), 6);
  EXPECT_NEAR(mlp_bound(1, 1, Activation::gelu).value(), 1.128904, 1e-4);
  EXPECT_NEAR(mlp_bound(1, 1, Activation::silu).value(), 1.099839, 1e-4);
  EXPECT_GT(activation_slope(Activation::gelu), 1.12899307);  // tanh form
  EXPECT_GT(activation_slope(Activation::silu), 1.09983933);
  const BlockParts parts{
      .attention = 2.0, .attention_norm = 3.0, .mlp = 5.0, .mlp_norm = 7.0};
  expect_close(pre_norm_block(parts).value(), 7.0 * 36.0);
  expect_close(post_norm_block(parts).value(), 3 * 3.0 * 7 * 6);
  // products over layers leave double, and their logarithm does not
  Magnitude model = 1.0;
  for (int layer = 0; layer < 200; ++layer)
    model = model * pre_norm_block(parts);
  EXPECT_TRUE(std::isinf(model.value()));
  EXPECT_NEAR(model.log10(), 200 * std::log10(252.0), 1e-9);
}

TEST(OtherBounds, NoInputExceedsThem) {
  for (const Kind kind : {Kind::l2, Kind::cosine, Kind::sigmoid})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      test::Trial t = test::trial(kind, seed);
      const double R = test::radius(t.x);
      if (seed % 4 < 2) t.x = test::climb(t, R, 12, Rng(seed).split(50));
      const Matrix J = test::jacobian(t);
      for (const Bound& b : bounds(t.weights, test::setting_of(t, R)))
        EXPECT_LE(test::measured(J, b.norm, t.x.rows(), Rng(seed)),
                  b.value * (1 + 1e-9))
            << b.name << " seed " << seed;
    }
}

}  // namespace other_bounds_test
}  // namespace lipscope
