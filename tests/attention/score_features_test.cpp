// What changes scores beside the kind: rotary positions of every type, q/k-norm
// and a bias by distance, alone and together.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace score_features_test {

constexpr Rotary::SlowPlanes slow{.context = 12.0, .slow = 1.0, .fast = 4.0};

struct Case {
  test::LayerCase layer;
  AttentionOptions options;
  std::string name;
};

// heads of width 6, so that there is a plane of every speed
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (int features = 1; features < 12; ++features) {
        const bool norm = features & 1, bias = features & 2;
        const int rope = features / 4;  // none, in part, of type llama3
        if (norm && kind_of(kind).tied) continue;
        if (bias && !kind_of(kind).shares()) continue;
        if (rope > 0 && !kind_of(kind).no_rope.empty()) continue;
        const test::LayerCase c{.kind = kind,
                                .mask = mask,
                                .heads = 4,
                                .biases = true,
                                .seed = all.size(),
                                .n = 5,
                                .d = 24,
                                .key_heads = 2};
        AttentionOptions o = test::options_of(c);
        const Rng rng(c.seed + 5);
        if (norm)
          o.query_key_norm =
              QueryKeyNorm{.query_gain = flatten(gaussian(1, 6, rng.split(0))),
                           .key_gain = flatten(gaussian(1, 6, rng.split(1))),
                           .epsilon = 0.1};
        if (bias)
          o.relative_bias = RelativeBias{
              .table = gaussian(8, 4, rng.split(2)),
              .furthest = 6,
              .looks_back = mask == Mask::causal && features % 3 == 0};
        if (rope == 1) o.rope = Rotary{.theta = 20.0, .width = 4};
        if (rope == 2)
          o.rope = Rotary{.theta = 20.0, .factor = 3.0, .slow = slow};
        all.push_back({c, o,
                       c.name() + (norm ? " norm" : "") +
                           (bias ? " bias" : "") + " rope " +
                           std::to_string(rope)});
      }
  return all;
}

TEST(ScoreFeatures, HaveTheClosedFormOfTheDenseOracle) {
  ASSERT_GT(cases().size(), 40u);
  for (const Case& c : cases()) {
    const AttentionWeights w = test::random_layer(c.layer);
    const Matrix x = test::random_tokens(c.layer);
    for (const std::vector<Index>& heads :
         {std::vector<Index>{}, std::vector<Index>{2}}) {
      AttentionOptions o = c.options;
      o.heads = heads;
      const Matrix exact = dense_jacobian(w, o, x);
      const MultiHeadAttention<double> f(w, o);
      EXPECT_LT((materialize(*f.linearize(x)) - exact).norm(),
                1e-12 * exact.norm())
          << c.name;
      EXPECT_LT(check_derivative(f, x, Rng(1)).error, 1e-7) << c.name;
      EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(2)), 1e-12) << c.name;
      const MultiHeadAttention<float> g(w, o);
      EXPECT_LT((g(x.cast<float>()).cast<double>() - f(x)).norm(),
                1e-4 * f(x).norm())
          << c.name;
    }
  }
}

TEST(ScoreFeatures, HaveTheGradientOfATangent) {
  for (const Case& c : cases()) {
    const AttentionWeights w = test::random_layer(c.layer);
    const Matrix x = test::random_tokens(c.layer);
    const MultiHeadAttention<double> f(w, c.options);
    const Rng rng(c.layer.seed + 77);
    const Vector v = random_direction(x.size(), rng.split(0));
    const Vector u = random_direction(x.size(), rng.split(1));
    const Matrix dx = gaussian(x.rows(), x.cols(), rng.split(2));
    const Matrix gradient = f.tangent_gradient(x, v, u);
    const auto at = [&](double t) {
      return u.dot(dense_jacobian(w, c.options, x + t * dx) * v);
    };
    const double h = 2e-4;
    const double numeric =
        (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    EXPECT_NEAR(gradient.cwiseProduct(dx).sum(), numeric,
                1e-7 * gradient.norm() * dx.norm())
        << c.name;
  }
}

// With a norm over all heads a head reads what the others project.
TEST(QueryKeyNorm, OverHeadsIsOneNormOfAToken) {
  const test::LayerCase c{.heads = 2, .seed = 3, .n = 4, .d = 8};
  const AttentionWeights w = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  QueryKeyNorm norm{.query_gain = Vector::Constant(8, 1.5),
                    .key_gain = Vector::Constant(8, 0.5),
                    .epsilon = 0.1,
                    .over_heads = true};
  const MultiHeadAttention<double> f(w, {.query_key_norm = norm});
  EXPECT_LT(check_derivative(f, x, Rng(1)).error, 1e-8);
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(2)), 1e-13);
  // by hand
  const auto normed = [&](Matrix z, double gain) {
    for (Index i = 0; i < z.rows(); ++i)
      z.row(i) *= gain / std::sqrt(z.row(i).squaredNorm() / 8 + 0.1);
    return z;
  };
  const Matrix q = normed(x * w.query, 1.5), k = normed(x * w.key, 0.5);
  Matrix y(4, 8);
  for (Index h = 0; h < 2; ++h) {
    Matrix p = q.middleCols(4 * h, 4) * k.middleCols(4 * h, 4).transpose() / 2;
    p = p.array().exp();
    for (Index i = 0; i < 4; ++i) p.row(i) /= p.row(i).sum();
    y.middleCols(4 * h, 4) = p * (x * w.value).middleCols(4 * h, 4);
  }
  EXPECT_LT((f(x) - y * w.output).norm(), 1e-13 * y.norm());
  EXPECT_THROW(
      MultiHeadAttention<double>(w, {.heads = {0}, .query_key_norm = norm}),
      std::invalid_argument);
  norm.query_gain.resize(4);
  EXPECT_THROW(MultiHeadAttention<double>(w, {.query_key_norm = norm}),
               std::invalid_argument);
}

// of MPNet's table, as transformers' function has it
TEST(RelativeBias, HasHuggingFacesBuckets) {
  const RelativeBias bias{.table = Matrix::Zero(32, 1)};
  const std::vector<Index> first = {0, 1,  2,  3,  4,  5,  6,  7,
                                    8, 12, 16, 23, 32, 46, 64, 91};
  for (Index d = 0; d < 1000; ++d) {
    const Index bucket =
        std::upper_bound(first.begin(), first.end(), d) - first.begin() - 1;
    EXPECT_EQ(relative_bucket(bias, -d), bucket) << d;
    EXPECT_EQ(relative_bucket(bias, d), d == 0 ? 0 : 16 + bucket) << d;
  }
}

TEST(RelativeBias, OfTokensBehindHasANumberForEachDistance) {
  const RelativeBias bias{
      .table = (Matrix(3, 2) << 1, 2, 3, 4, 5, 6).finished(),
      .looks_back = true};
  EXPECT_EQ(scores_behind(bias, 1, 5), Vector({{2, 4, 6, 6, 6}}));
  EXPECT_EQ(relative_scores(bias, 0, 3), Vector({{5, 3, 1, 0, 0}}));
  EXPECT_THROW(relative_bucket(bias, 1), std::invalid_argument);
}

TEST(Rotary, HasTheSpeedsOfItsType) {
  const Vector plain = frequencies({.theta = 16.0}, 8);
  EXPECT_LT((plain - Vector{{1.0, 0.5, 0.25, 0.125}}).norm(), 1e-15);
  EXPECT_EQ(frequencies({.theta = 16.0, .width = 4}, 8).size(), 2);
  EXPECT_LT((frequencies({.theta = 16.0, .factor = 2.0}, 8) - plain / 2).norm(),
            1e-15);
  // turns within the context: 6.4, 3.2, 1.6 and 0.8, of which 1 is slow and 4
  // is not
  const double context = 6.4 * 2 * M_PI;
  const Vector llama3 = frequencies(
      {.theta = 16.0, .factor = 2.0, .slow = {{.context = context}}}, 8);
  const auto between = [](double t) { return (1 - t) / 2 + t; };
  EXPECT_NEAR(llama3[0], 1.0, 1e-15);
  EXPECT_NEAR(llama3[1], 0.5 * between(2.2 / 3), 1e-15);
  EXPECT_NEAR(llama3[2], 0.25 * between(0.6 / 3), 1e-15);
  EXPECT_NEAR(llama3[3], 0.125 / 2, 1e-15);
}

}  // namespace score_features_test
}  // namespace lipscope
