#include "lipscope/theory/stack_constant.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_kernel.h"
#include "tests/support/stack_map.h"

namespace lipscope {
namespace stack_constant_test {

Matrix scalar(double a) { return Matrix::Constant(1, 1, a); }

double jacobian_norm(const Map<double>& f, const Matrix& x) {
  return dense_norm(materialize(*f.linearize(x))).value;
}

// d = 1: attention 2·(2·3·½) = 6 times Φ, an MLP of 2·3 with relu
LayerWeights one_by_one() {
  return test::scalar_layer(
      {.query = 2, .value = 3, .output = 0.5, .up = 2, .down = 3});
}

NormWeights norm(double gain) {
  return {.gain = Vector::Constant(1, gain),
          .bias = Vector::Constant(1, 0.25),
          .epsilon = 1e-4};
}

void expect_log10(const std::optional<Magnitude>& found, double value) {
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->log10(), std::log10(value), 1e-10);
}

TEST(StackConstant, IsAttainedByOneTokenOfWidthOne) {
  Stack s{.layers = {one_by_one(), one_by_one()},
          .head = (Matrix(1, 2) << 3, 4).finished()};
  const StackConstant c = stack_constant(s);
  expect_log10(c.hidden, 49.0 * 49);
  expect_log10(c.logits, 49.0 * 49 * 5);
  EXPECT_EQ(c.scope, InputSet::everywhere());
  EXPECT_EQ(c.unbounded, "");
  ASSERT_EQ(c.parts.size(), 5u);
  EXPECT_EQ(c.parts[2].part, "attention");
  EXPECT_EQ(c.parts[2].layer, 1);
  EXPECT_EQ(c.parts[4].part, "head");
  // 7·7·7·7·|(3, 4)|, wherever the relu is open
  EXPECT_NEAR(jacobian_norm(*test::stack_map(s), scalar(1)), 49.0 * 49 * 5,
              1e-8);
}

TEST(StackConstant, TakesTheNormsWhereTheyStand) {
  LayerWeights layer = one_by_one();
  layer.attention_norm = norm(2);  // 2/√1e-4 = 200
  layer.mlp_norm = norm(-0.5);     // 50
  layer.norm = NormPlace::post;
  const double p = kim21_phi_inverse(7);
  const double attention = 6 * l2_kernel(7, Mask::causal).value();
  EXPECT_GT(attention, 6 * (2 * p));
  Stack s{.layers = {layer}, .context = 7, .head = scalar(10)};
  const StackConstant post = stack_constant(s);
  EXPECT_EQ(post.parts[0].bound, "l2_kernel");
  expect_log10(post.hidden, 200 * (1 + attention) * 50 * (1 + 6));
  expect_log10(post.logits, 10 * 200 * (1 + attention) * 50 * (1 + 6));
  s.layers[0].norm = NormPlace::pre;
  s.last_norm = norm(3);  // 300
  const StackConstant pre = stack_constant(s);
  expect_log10(pre.hidden, (1 + 200 * attention) * (1 + 50 * 6) * 300);
  EXPECT_EQ(pre.scope, InputSet::everywhere());
}

TEST(StackConstant, OfDotProductsFollowsTheTokensThroughTheBall) {
  LayerWeights layer = one_by_one();
  layer.kind = Kind::dot;
  layer.attention.query = layer.attention.key = scalar(1);
  layer.attention.value = scalar(0.5);
  layer.attention.output = scalar(1);
  layer.mlp = {.up = scalar(0.5),
               .down = scalar(0.5),
               .up_bias = Vector::Constant(1, 2),
               .down_bias = Vector::Constant(1, -0.9),
               .activation = Activation::relu};
  const Stack s{.layers = {layer, layer}, .context = 2};
  const StackConstant none = stack_constant(s);
  EXPECT_FALSE(none.hidden);
  EXPECT_FALSE(none.logits);
  EXPECT_EQ(none.unbounded.rfind("layer 0, attention: ", 0), 0u);

  // a = R²: ½(a + (1 + a)√(1 + e^{2a} ln(1 + e^{−2a})))
  const auto attention = [](double r) {
    const double a = r * r, e = std::exp(2 * a);
    return 0.5 * (a + (1 + a) * std::sqrt(1 + e * std::log1p(1 / e)));
  };
  // R → R(1 + ½) → ·(1 + ¼) + |mlp(0)|, mlp(0) = 2·½ − 0.9
  const double next = 1.5 * 1.25 + 0.1;
  const StackConstant c = stack_constant(s, {.radius = 1.0});
  expect_log10(c.hidden,
               (1 + attention(1)) * 1.25 * (1 + attention(next)) * 1.25);
  EXPECT_FALSE(c.logits);
  EXPECT_EQ(c.scope, InputSet::ball(1.0));
  EXPECT_EQ(name_of(c.parts[2].scope), "ball of radius 1.975");
}

TEST(StackConstant, OfDotProductsBehindNormsNeedsNoBallButAtTheStart) {
  LayerWeights layer = one_by_one();
  layer.kind = Kind::dot;
  layer.attention.key = scalar(1);
  layer.attention_norm = layer.mlp_norm = norm(1);
  layer.norm = NormPlace::post;
  Stack s{.layers = {layer, layer}, .context = 3};
  EXPECT_FALSE(stack_constant(s).hidden);
  const StackConstant post = stack_constant(s, {.radius = 2.0});
  EXPECT_EQ(post.scope, InputSet::ball(2.0));
  // the norm of the layer before: √1·1 + ¼
  EXPECT_NE(name_of(post.parts[4].scope).find("radius 1.25"),
            std::string::npos);
  for (LayerWeights& l : s.layers) l.norm = NormPlace::pre;
  const StackConstant pre = stack_constant(s);
  EXPECT_TRUE(pre.hidden);
  EXPECT_EQ(pre.scope, InputSet::everywhere());
}

TEST(StackConstant, OfUntiedL2IsNotThere) {
  LayerWeights layer = one_by_one();
  layer.kind = Kind::l2_untied;
  layer.attention.key = scalar(1);
  const Stack s{.layers = {layer}, .context = 3};
  EXPECT_FALSE(stack_constant(s, {.radius = 1.0}).hidden);
  EXPECT_NE(stack_constant(s, {.radius = 1.0}).unbounded.find("untied"),
            std::string::npos);
}

TEST(StackConstant, RefusesWhatItIsNotProvedFor) {
  LayerWeights gated = one_by_one(), rotated = one_by_one();
  gated.mlp.gate = scalar(1);
  rotated.rope = Rotary{.theta = 1e4};
  for (const LayerWeights& layer : {gated, rotated})
    EXPECT_THROW(stack_constant({.layers = {layer}}), std::invalid_argument);
}

TEST(StackConstant, GoesOnBeyondADouble) {
  LayerWeights layer = one_by_one();
  layer.attention.query = scalar(1e80);
  const Stack s{.layers = {layer, layer}, .context = 1};
  const StackConstant c = stack_constant(s);
  ASSERT_TRUE(c.hidden);
  EXPECT_TRUE(std::isinf(c.hidden->value()));
  // (1.5e160)² · 7²
  EXPECT_NEAR(c.hidden->log10(), 2 * (160 + std::log10(1.5)) + std::log10(49.0),
              1e-9);
}

Stack random_stack(Kind kind, int norms, std::uint64_t seed) {
  const Rng rng(seed);
  const Index d = 2;
  Stack s{.context = 3, .head = gaussian(d, 3, rng.split(1))};
  for (std::uint64_t l = 0; l < 2; ++l) {
    const Rng r = rng.split(10 + l);
    LayerWeights w{.mask = Mask::causal, .kind = kind};
    w.attention.heads = 2;
    w.attention.query = gaussian(d, 2, r.split(0));
    if (kind == Kind::dot) w.attention.key = gaussian(d, 2, r.split(1));
    w.attention.value = gaussian(d, 2, r.split(2));
    w.attention.output = gaussian(2, d, r.split(3));
    w.mlp = {.up = gaussian(d, 4, r.split(4)),
             .down = gaussian(4, d, r.split(5)),
             .up_bias = gaussian(4, 1, r.split(6)),
             .down_bias = gaussian(d, 1, r.split(7))};
    w.norm = norms == 0   ? NormPlace::none
             : norms == 1 ? NormPlace::pre
                          : NormPlace::post;
    if (norms != 0) {
      const NormWeights n{.gain = gaussian(d, 1, r.split(8)),
                          .bias = gaussian(d, 1, r.split(9)),
                          .epsilon = 0.1};
      w.attention_norm = w.mlp_norm = n;
    }
    s.layers.push_back(std::move(w));
  }
  if (norms == 1) s.last_norm = s.layers[0].mlp_norm;
  return s;
}

// ‖J‖ at the best of random moves, tokens kept within the radius
double climbed(const Map<double>& f, Index n, Index d, double radius, Rng rng) {
  const auto within = [&](Matrix x) {
    for (Index i = 0; i < n; ++i)
      x.row(i) *= std::min(1.0, radius / x.row(i).norm());
    return x;
  };
  Matrix x = within(radius * gaussian(n, d, rng.split(0)));
  double best = jacobian_norm(f, x);
  for (std::uint64_t step = 1; step <= 40; ++step) {
    const double size = radius * std::pow(0.5, double(step % 8));
    const Matrix y = within(x + size * gaussian(n, d, rng.split(step)));
    const double there = jacobian_norm(f, y);
    if (there > best) {
      best = there;
      x = y;
    }
  }
  return best;
}

TEST(StackConstant, IsNeverBelowWhatIsReached) {
  for (const Kind kind : {Kind::l2, Kind::dot})
    for (const int norms : {0, 1, 2})
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const Stack s = random_stack(kind, norms, seed);
        const double radius = std::exp(Rng(seed).split(99).normal());
        const StackConstant c = stack_constant(s, {.radius = radius});
        ASSERT_TRUE(c.logits);
        const double reached =
            climbed(*test::stack_map(s), 3, 2, radius, Rng(seed).split(98));
        EXPECT_LE(reached, c.logits->value() * (1 + 1e-12))
            << name_of(kind) << " norms " << norms << " seed " << seed;
      }
}

}  // namespace stack_constant_test
}  // namespace lipscope
