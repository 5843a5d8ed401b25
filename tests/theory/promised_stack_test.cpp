#include <gtest/gtest.h>

#include <Eigen/QR>

#include "lipscope/theory/stack_constant.h"
#include "tests/support/stack_map.h"
#include "tests/theory/cases.h"

/// stack_constant of models that are made to keep a constant: position heads,
/// heads apart, other joins, max-min; in the 2-norm and the token norm.
namespace lipscope {
namespace promised_stack_test {

using test::scalar;

void expect_value(const std::optional<Magnitude>& found, double value) {
  ASSERT_TRUE(found);
  EXPECT_GE(found->value(), value * (1 - 1e-13));
  EXPECT_NEAR(found->value(), value, 1e-12 * value);
}

StackConstant constant(const Stack& s, Norm norm,
                       std::optional<double> R = {}) {
  return stack_constant(s, {.norm = norm, .radius = R});
}

// d = 2. A position head of 0.6·(0.5 + 0.25)·2 = 0.9 in coordinate 0; a
// dot-product head in coordinate 1 with ‖W_QW_Kᵀ‖ = 1 and ‖W_V‖·0.8 = 1.2; an
// MLP of constant 2·½ with |mlp(0)| = ½; a quarter of each and three quarters
// of x
LayerWeights mixed_layer() {
  LayerWeights w{.norm = NormPlace::none,
                 .residual_scale = 0.25,
                 .carry = 0.75,
                 .mask = Mask::causal,
                 .kind = Kind::dot};
  w.position_heads =
      PositionHeads{.weights = (Matrix(2, 1) << 0.5, 0.25).finished(),
                    .value = (Matrix(2, 1) << 1.2, 1.6).finished(),
                    .share = Vector::Constant(1, 0.6),
                    .width = 2};
  w.attention.query = (Matrix(2, 1) << 0.5, 0).finished();
  w.attention.key = (Matrix(2, 1) << 0, 2).finished();
  w.attention.value = (Matrix(2, 1) << 0, 1.5).finished();
  w.attention.output = (Matrix(1, 2) << 0, 0.8).finished();
  w.mlp = {.up = 2 * Matrix::Identity(2, 2),
           .down = 0.5 * Matrix::Identity(2, 2),
           .up_bias = (Vector(2) << 0, 1).finished(),
           .activation = Activation::max_min};
  return w;
}

TEST(PromisedStack, IsTheFormulaWorkedByHandInTheTokenNorm) {
  const Stack s{.layers = {mixed_layer(), mixed_layer()},
                .context = 3,
                .head = (Matrix(2, 1) << 3, 4).finished()};
  EXPECT_FALSE(constant(s, Norm::token).hidden);
  const StackConstant c = constant(s, Norm::token, 1.0);
  // layer 0, R = 1: 1.2(1 + 1 + 1) = 3.6, and 0.9² + 3.6² = 13.77
  const double first = 0.75 + 0.25 * std::sqrt(13.77);
  // ¾ + ¼(0.9² + 1.2²)^½ = 1.125, and then 1.125(¾ + ¼) + ¼·½ = 1.25; layer 1:
  // 1.2(1 + 2·1.5625) = 4.95, and 0.9² + 4.95² = 25.3125
  const double second = 0.75 + 0.25 * std::sqrt(25.3125);
  expect_value(c.hidden, first * second);
  expect_value(c.logits, 5 * first * second);
  EXPECT_EQ(c.scope, InputSet::ball(1.0));
  ASSERT_EQ(c.parts.size(), 7u);
  EXPECT_EQ(c.parts[3].part, "position_heads");
  EXPECT_EQ(c.parts[3].scope, InputSet::everywhere());
  EXPECT_NEAR(c.parts[3].value.value(), 0.9, 1e-13);
  EXPECT_EQ(c.parts[4].part, "attention");
  EXPECT_EQ(c.parts[4].bound, "row_sums");
  EXPECT_EQ(name_of(c.parts[4].scope), "ball of radius 1.25");
  EXPECT_NEAR(c.parts[4].value.value(), 4.95, 1e-11);
  EXPECT_EQ(c.parts[5].part, "mlp");
  EXPECT_NEAR(c.parts[5].value.value(), 1.0, 1e-13);
}

TEST(PromisedStack, AddsHeadsThatShareACoordinate) {
  LayerWeights layer = mixed_layer();
  layer.attention.output << 0.48, 0.64;  // as long as before
  const Stack s{.layers = {layer}, .context = 3};
  expect_value(constant(s, Norm::token, 1.0).hidden, 0.75 + 0.25 * (0.9 + 3.6));
}

TEST(PromisedStack, AddsTheSquaresOfHeadsApart) {
  // two dot-product heads apart: 1.2·3 and 0.6·2·3 in coordinates 0 and 1
  LayerWeights layer = mixed_layer();
  layer.position_heads.reset();
  layer.attention.heads = 2;
  layer.attention.query = (Matrix(2, 2) << 0.5, 0, 0, 1).finished();
  layer.attention.key = (Matrix(2, 2) << 0, 0, 2, 1).finished();
  layer.attention.value = (Matrix(2, 2) << 0, 2, 1.5, 0).finished();
  layer.attention.output = (Matrix(2, 2) << 0.8, 0, 0, 0.6).finished();
  const Stack s{.layers = {layer}, .context = 3};
  // ‖W_O‖(Σ alone²)^½ = 0.8·3·2.5 = 6 and the sum 7.2 are larger
  expect_value(constant(s, Norm::token, 1.0).hidden,
               0.75 + 0.25 * 3 * std::sqrt(1.44 + 1.44));
}

TEST(PromisedStack, HasTheKeyBiasOfRotaryHeads) {
  LayerWeights layer = mixed_layer();
  layer.position_heads.reset();
  layer.rope = Rotary{};
  layer.attention = {.query = 0.5 * Matrix::Identity(2, 2),
                     .key = 2 * Matrix::Identity(2, 2),
                     .value = 3 * Matrix::Identity(2, 2),
                     .output = Matrix::Identity(2, 2),
                     .query_bias = (Vector(2) << 0, 1).finished(),
                     .key_bias = (Vector(2) << 3, 4).finished()};
  const Stack s{.layers = {layer}, .context = 3};
  // R = 2: a = ½(2·2 + 5)·2/√2, a_b = (½·2 + 1)·2·2/√2
  const double l = 3 * (1 + 9 / std::sqrt(2.0) + 8 / std::sqrt(2.0));
  expect_value(constant(s, Norm::token, 2.0).hidden, 0.75 + 0.25 * l);
  EXPECT_TRUE(constant(s, Norm::two, 2.0).hidden);
}

TEST(PromisedStack, OfPositionHeadsAloneHoldsEverywhere) {
  LayerWeights layer = mixed_layer();
  layer.attention = {.heads = 0};
  Stack s{.layers = {layer}, .context = 3};
  for (const Norm norm : {Norm::two, Norm::token}) {
    const StackConstant c = constant(s, norm);
    expect_value(c.hidden, 0.75 + 0.25 * 0.9);
    EXPECT_EQ(c.scope, InputSet::everywhere());
  }
  s.layers[0].carry = 0;  // f alone
  s.layers[0].residual_scale = 1;
  expect_value(constant(s, Norm::two).hidden, 0.9);
  s.layers[0].carry = 1;  // x + f(x)
  expect_value(constant(s, Norm::two).hidden, 1.9 * 2);
}

TEST(PromisedStack, TakesTheMlpByCentredSlopesWhereThatIsLess) {
  LayerWeights layer = mixed_layer();
  layer.attention = {.heads = 0};
  // W₁W₂ = −I: |¾ − ¼·½| + ¼·0.6290 = 0.78225, not ¾ + ¼·1.1290
  layer.mlp.down *= -1;
  layer.mlp.activation = Activation::gelu;
  const Stack back{.layers = {layer}, .context = 3};
  const StackConstant c = constant(back, Norm::token);
  expect_value(c.hidden, (0.75 + 0.25 * 0.9) * (0.625 + 0.25 * 0.6290));
  EXPECT_EQ(c.parts[1].bound, "centred slopes");
  // layers that are x + f(x) and nothing else keep their numbers
  LayerWeights plain = layer;
  plain.position_heads.reset();
  plain.carry = plain.residual_scale = 1;
  plain.kind = Kind::l2;
  plain.attention = {.query = Matrix::Identity(2, 2),
                     .value = Matrix::Identity(2, 2),
                     .output = Matrix::Identity(2, 2)};
  const StackConstant old = constant({.layers = {plain}}, Norm::two);
  EXPECT_EQ(old.parts[1].bound, "weight norms");
}

TEST(PromisedStack, OfL2HeadsHoldsEverywhereInTheTokenNorm) {
  LayerWeights layer = mixed_layer();
  layer.kind = Kind::l2;
  layer.attention.key.resize(0, 0);
  const Stack s{.layers = {layer}, .context = 1};
  // one token: p = 0, ‖W_Q‖²‖W_VW_O‖/√1 = ¼·1.2
  const StackConstant c = constant(s, Norm::token);
  expect_value(c.hidden, 0.75 + 0.25 * std::sqrt(0.81 + 0.09));
  EXPECT_EQ(c.parts[1].bound, "l2_row_sums");
  EXPECT_EQ(c.scope, InputSet::everywhere());
}

TEST(PromisedStack, OfRelativePositionsIsTheFormulaWorkedByHand) {
  // in the token norm a number by distance changes nothing
  Stack s{.layers = {mixed_layer()}, .context = 3};
  s.layers[0].relative_bias = RelativeBias{
      .table = (Matrix(3, 1) << 5, -3, 40).finished(), .looks_back = true};
  expect_value(constant(s, Norm::token, 1.0).hidden,
               0.75 + 0.25 * std::sqrt(13.77));
  // in the 2-norm all may look at the first token: S = 1 + … + 1, but for what
  // e^{−45} and e^{−8} leave; a + (1 + a)√S
  const double third =
      1 / (1 + std::exp(-2.0) * (std::exp(-35.) + std::exp(-43.)));
  const double second = 1 / (1 + std::exp(-2.0) * std::exp(8.));
  const double two = 1.2 * (1 + 2 * std::sqrt(1 + second + third));
  // castin24_ball is √3(4n + 1 + n)^½, more than this
  expect_value(constant(s, Norm::two, 1.0).hidden,
               0.75 + 0.25 * std::sqrt(0.81 + two * two));
  EXPECT_EQ(constant(s, Norm::two, 1.0).parts[1].bound, "relative_column_sums");
  // L2, two tokens, masses of e² to 1: p = 1, ‖W_Q‖‖W_QᵀW_VW_O‖ = ½·½·1.2
  s.layers[0].kind = Kind::l2;
  s.layers[0].attention.key.resize(0, 0);
  s.layers[0].attention.value << 1.5, 0;
  s.layers[0].relative_bias->table = (Matrix(2, 1) << -1, 1).finished();
  s.context = 2;
  const StackConstant c = constant(s, Norm::token);
  expect_value(c.hidden, 0.75 + 0.25 * std::sqrt(0.81 + 25 * 0.09));
  EXPECT_EQ(c.parts[1].bound, "relative_l2_row_sums");
  EXPECT_EQ(c.scope, InputSet::everywhere());
}

TEST(PromisedStack, RefusesWhatItIsNotProvedFor) {
  const auto refused = [](auto spoil) {
    Stack s{.layers = {mixed_layer()}, .context = 2};
    spoil(s.layers[0]);
    EXPECT_THROW(constant(s, Norm::two, 1.0), std::invalid_argument);
  };
  refused([](LayerWeights& w) { w.carry = -0.1; });
  refused([](LayerWeights& w) { w.mask = Mask::none; });
  refused([](LayerWeights& w) { w.parallel = true; });
  refused([](LayerWeights& w) { w.query_key_norm = QueryKeyNorm{}; });
  refused([](LayerWeights& w) { w.attention.output.resize(1, 3); });
  refused([](LayerWeights& w) {
    w.position_heads.reset();
    w.attention = {.heads = 0};
  });
  const Stack s{.layers = {mixed_layer()}, .context = 2};
  EXPECT_THROW(constant(s, Norm::inf, 1.0), std::invalid_argument);
  EXPECT_THROW(constant(s, Norm::token, -1.0), std::invalid_argument);
}

// ---- attacks

double jacobian_norm(const Map<double>& f, const Matrix& x, Norm norm) {
  const Matrix j = materialize(*f.linearize(x));
  return norm == Norm::two ? test::norm2(j)
                           : test::token_norm_below(j, x.rows(), Rng(1));
}

// the norm of the Jacobian at the best of random moves within the ball
double climbed(const Map<double>& f, Matrix x, double radius, Norm norm,
               int steps = 40) {
  const Rng rng(7);
  const auto within = [&](Matrix y) {
    for (Index i = 0; i < y.rows(); ++i)
      y.row(i) *= std::min(1.0, radius / y.row(i).norm());
    return y;
  };
  x = within(std::move(x));
  double best = jacobian_norm(f, x, norm);
  for (int step = 1; step <= steps; ++step) {
    const double size = radius * std::pow(0.5, double(step % 8));
    const Matrix y =
        within(x + size * gaussian(x.rows(), x.cols(), rng.split(step)));
    const double there = jacobian_norm(f, y, norm);
    if (there > best) {
      best = there;
      x = y;
    }
  }
  return best;
}

Matrix orthogonal(Index rows, Index cols, Rng rng) {
  const Matrix g = gaussian(rows, rows, rng);
  return (Matrix(g.householderQr().householderQ())).leftCols(cols);
}

// a head that looks at one distance: the others have a share of 1e-9
Matrix near_shift(Index distances, std::initializer_list<Index> at) {
  Matrix p = Matrix::Constant(distances, static_cast<Index>(at.size()), 1e-9);
  Index h = 0;
  for (const Index t : at) p(t, h++) = 1.0 - 1e-9 * double(distances - 1);
  return p;
}

// Position heads and max-min between orthogonal matrices, without residuals;
// the first layer has two heads, the second one.
Stack orthogonal_stack(std::uint64_t seed, bool one_direction) {
  const Rng rng(seed);
  const Index d = 4;
  Stack s{.context = 5, .head = orthogonal(d, 3, rng.split(9))};
  for (std::uint64_t l = 0; l < 2; ++l) {
    LayerWeights w{.norm = NormPlace::none, .carry = 0, .mask = Mask::causal};
    w.attention = {.heads = 0};
    Matrix value = orthogonal(d, d, rng.split(4 * l));
    if (l == 0 && one_direction) value.rightCols(2) = value.leftCols(2).eval();
    w.position_heads = PositionHeads{
        .weights = l == 0 ? near_shift(5, {0, 2}) : near_shift(5, {1}),
        .value = std::move(value),
        .share = l == 0 ? Vector((Vector(2) << 0.6, 0.8).finished())
                        : Vector(Vector::Ones(1)),
        .width = d};
    w.mlp = {.up = orthogonal(d, d, rng.split(4 * l + 1)),
             .down = orthogonal(d, d, rng.split(4 * l + 2)),
             .up_bias = gaussian(d, 1, rng.split(4 * l + 3)),
             .activation = Activation::max_min};
    s.layers.push_back(std::move(w));
  }
  s.head = orthogonal(d, d, rng.split(10));
  return s;
}

TEST(PromisedStack, OfOrthogonalMatricesIsAttained) {
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (const Norm norm : {Norm::two, Norm::token}) {
      const Stack s = orthogonal_stack(seed, norm == Norm::two);
      const double bound = constant(s, norm).logits->value();
      EXPECT_NEAR(bound, 1.0, 1e-12);
      const double reached =
          jacobian_norm(*test::stack_map(s), gaussian(5, 4, Rng(seed)), norm);
      EXPECT_LE(reached, bound);
      EXPECT_GT(reached, 0.999) << name_of(norm) << " seed " << seed;
    }
}

TEST(PromisedStack, WithAFactorLeftOutIsExceeded) {
  Stack s = orthogonal_stack(3, true);
  for (LayerWeights& w : s.layers) w.position_heads->value *= 1.25;
  s.head *= 1.25;
  const Matrix x = gaussian(5, 4, Rng(11));
  for (const Norm norm : {Norm::two, Norm::token}) {
    const StackConstant c = constant(s, norm);
    const double reached = jacobian_norm(*test::stack_map(s), x, norm);
    EXPECT_LE(reached, c.logits->value());
    // without the head, without a layer's position heads
    EXPECT_GT(reached, c.hidden->value()) << name_of(norm);
    for (const StackPart& part : c.parts)
      if (part.part == "position_heads") {
        EXPECT_GT(reached, c.logits->value() / part.value.value());
      }
    // without the share of the second head: 0.6 of (0.6² + 0.8²)^½
    EXPECT_GT(reached, c.logits->value() * 0.6);
  }
}

TEST(PromisedStack, OfRotaryHeadsWithoutTheKeyBiasIsExceeded) {
  LayerWeights layer = mixed_layer();
  layer.position_heads.reset();
  layer.carry = 0;
  layer.residual_scale = 1;
  layer.rope = Rotary{};
  layer.attention = {.query = Matrix::Identity(2, 2),
                     .key = 0.01 * Matrix::Identity(2, 2),
                     .value = Matrix::Identity(2, 2),
                     .output = Matrix::Identity(2, 2),
                     .key_bias = (Vector(2) << 6, 8).finished()};
  layer.mlp = {.up = Matrix::Identity(2, 2),
               .down = Matrix::Identity(2, 2),
               .activation = Activation::max_min};
  const Stack s{.layers = {layer}, .context = 3};
  Stack wrong = s;
  wrong.layers[0].attention.key_bias.setZero();
  const double reached = climbed(*test::stack_map(s), gaussian(3, 2, Rng(1)),
                                 1.0, Norm::token, 200);
  EXPECT_LE(reached, constant(s, Norm::token, 1.0).hidden->value());
  EXPECT_GT(reached, 1.5 * constant(wrong, Norm::token, 1.0).hidden->value());
}

struct Form {
  const char* name;
  Kind kind;
  bool position, compares, rotary, relative = false;
};

constexpr Form forms[] = {
    {"position", Kind::dot, true, false, false},
    {"dot beside them", Kind::dot, true, true, false},
    {"dot", Kind::dot, false, true, false},
    {"rotary beside them", Kind::dot, true, true, true},
    {"rotary", Kind::dot, false, true, true},
    {"l2 beside them", Kind::l2, true, true, false},
    {"l2", Kind::l2, false, true, false},
    {"relative dot beside them", Kind::dot, true, true, false, true},
    {"relative dot", Kind::dot, false, true, false, true},
    {"relative l2 beside them", Kind::l2, true, true, false, true},
    {"relative l2", Kind::l2, false, true, false, true}};

// d = 4; a position head and a head that compares, apart, or two of one sort
Stack random_stack(const Form& form, std::uint64_t seed) {
  const Rng rng(seed);
  const Index d = 4, k = 2;
  Stack s{.context = 3, .head = gaussian(d, 3, rng.split(1))};
  for (std::uint64_t l = 0; l < 2; ++l) {
    const Rng r = rng.split(10 + l);
    const double alpha = seed % 3 == 0 ? 0.3 : 1.0;
    LayerWeights w{.norm = NormPlace::none,
                   .residual_scale = alpha,
                   .carry = seed % 3 == 1 ? 1.0 : 1.0 - alpha,
                   .mask = Mask::causal,
                   .kind = form.kind};
    const Index p = !form.position ? 0 : form.compares ? 1 : 2;
    if (form.position)
      w.position_heads =
          PositionHeads{.weights = gaussian(3, p, r.split(1)).array().exp(),
                        .value = 0.7 * gaussian(d, p * k, r.split(2)),
                        .share = gaussian(p, 1, r.split(3)).cwiseAbs(),
                        .width = d};
    w.attention = {.heads = 2 - p};
    if (p < 2) {
      const Index q = (2 - p) * k;
      w.attention.query = 0.7 * gaussian(d, q, r.split(4));
      if (form.kind == Kind::dot)
        w.attention.key = 0.7 * gaussian(d, q, r.split(5));
      w.attention.value = 0.7 * gaussian(d, q, r.split(6));
      w.attention.output = Matrix::Zero(q, d);
      for (Index i = 0; i < q; ++i)
        w.attention.output(i, p * k + i) = i < k ? 0.6 : 0.8;
      if (form.relative)
        w.relative_bias = RelativeBias{.table = std::exp(r.split(14).normal()) *
                                                gaussian(3, 2 - p, r.split(13)),
                                       .looks_back = true};
      if (form.rotary) {
        w.rope = Rotary{};
        w.attention.key_bias = gaussian(q, 1, r.split(7));
        w.attention.query_bias = gaussian(q, 1, r.split(8));
      }
    }
    constexpr Activation activations[] = {Activation::max_min, Activation::gelu,
                                          Activation::relu};
    w.mlp = {.up = 0.7 * gaussian(d, 4, r.split(9)),
             .down = 0.7 * gaussian(4, d, r.split(10)),
             .up_bias = gaussian(4, 1, r.split(11)),
             .down_bias = gaussian(d, 1, r.split(12)),
             .activation = activations[seed / 3 % 3]};
    s.layers.push_back(std::move(w));
  }
  return s;
}

TEST(PromisedStack, IsNeverBelowWhatIsReached) {
  for (const Form& form : forms)
    for (const Norm norm : {Norm::two, Norm::token}) {
      double nearest = 0.0;
      for (std::uint64_t seed = 0; seed < 9; ++seed) {
        const Stack s = random_stack(form, seed);
        const double radius = std::exp(0.5 * Rng(seed).split(99).normal());
        const StackConstant c = constant(s, norm, radius);
        ASSERT_TRUE(c.logits) << form.name;
        const double reached =
            climbed(*test::stack_map(s),
                    radius * gaussian(3, 4, Rng(seed).split(98)), radius, norm);
        EXPECT_LE(reached, c.logits->value())
            << form.name << ", norm " << name_of(norm) << ", seed " << seed;
        nearest = std::max(nearest, reached / c.logits->value());
      }
      EXPECT_GT(nearest, 0.0);
      RecordProperty(std::string(form.name) + ", " + name_of(norm),
                     std::to_string(nearest));
    }
}

// of one sub-layer of attention, without the MLP after it
TEST(PromisedStack, FollowsTokensThatAreNeverLongerThanItSays) {
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    for (const Form& form : forms) {
      if (form.kind != Kind::dot || !form.compares) continue;
      Stack s = random_stack(form, seed);
      const StackConstant c = constant(s, Norm::token, 1.0);
      ASSERT_TRUE(c.hidden);
      // the ball that the second layer's attention is bounded over
      double radius = 0.0;
      for (const StackPart& part : c.parts)
        if (part.layer == 1 && part.part == "attention")
          radius = std::stod(name_of(part.scope).substr(15));
      ASSERT_GT(radius, 0.0);
      s.layers.pop_back();
      s.head.resize(0, 0);
      const MapPtr<double> f = test::stack_map(s);
      for (std::uint64_t i = 0; i < 20; ++i) {
        Matrix x = gaussian(3, 4, Rng(seed).split(i));
        x.rowwise().normalize();
        EXPECT_LE((*f)(x).rowwise().norm().maxCoeff(), radius * 1.00001);
      }
    }
}

}  // namespace promised_stack_test
}  // namespace lipscope
