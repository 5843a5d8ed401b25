#include "lipscope/control/deviation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/theory/kim21.h"
#include "tests/support/stack_map.h"

namespace lipscope {
namespace deviation_test {

Matrix scalar(double a) { return Matrix::Constant(1, 1, a); }

NormWeights some_norm(Index d, const Rng& rng) {
  return {.gain = Vector::Ones(d) + 0.3 * flatten(gaussian(1, d, rng.split(0))),
          .bias = 0.2 * flatten(gaussian(1, d, rng.split(1))),
          .epsilon = 1e-5};
}

// two layers of two heads, three features, random weights
Stack some_stack(Kind kind, NormPlace place, std::uint64_t seed) {
  const Index d = 4;
  Stack stack{.context = 5};
  for (std::uint64_t l = 0; l < 2; ++l) {
    const Rng rng = Rng(seed).split(l);
    LayerWeights w{.kind = kind};
    w.attention.heads = 2;
    w.attention.query = 0.6 * gaussian(d, d, rng.split(0));
    if (kind != Kind::l2) w.attention.key = 0.6 * gaussian(d, d, rng.split(1));
    w.attention.value = 0.6 * gaussian(d, d, rng.split(2));
    w.attention.output = 0.6 * gaussian(d, d, rng.split(3));
    if (kind == Kind::dot) {  // as GPT-2 has them
      w.attention.query_bias = flatten(gaussian(1, d, rng.split(10)));
      w.attention.key_bias = flatten(gaussian(1, d, rng.split(11)));
      w.attention.value_bias = flatten(gaussian(1, d, rng.split(12)));
      w.attention.output_bias = flatten(gaussian(1, d, rng.split(13)));
    }
    w.mlp = {.up = 0.5 * gaussian(d, 6, rng.split(4)),
             .down = 0.5 * gaussian(6, d, rng.split(5)),
             .up_bias = flatten(gaussian(1, 6, rng.split(6)))};
    w.mask = Mask::causal;
    w.norm = place;
    if (place != NormPlace::none) {
      w.attention_norm = some_norm(d, rng.split(7));
      w.mlp_norm = some_norm(d, rng.split(8));
    }
    stack.layers.push_back(std::move(w));
  }
  if (place == NormPlace::pre)
    stack.last_norm = some_norm(d, Rng(seed).split(9));
  return stack;
}

// the change of size r that moves the last state most, by steps along the
// gradient from a random one
double largest_move(const Map<double>& map, const Matrix& x, double r,
                    Rng rng) {
  const Index n = x.rows(), d = x.cols();
  const Matrix before = map(x);
  Matrix delta = gaussian(n, d, rng);
  double best = 0.0;
  for (int step = 0; step < 12; ++step) {
    delta *= r / delta.norm();
    const Matrix at = x + delta;
    const Vector moved = (map(at) - before).row(n - 1).transpose();
    best = std::max(best, moved.norm() / delta.norm());
    Matrix cotangent = Matrix::Zero(n, d);
    cotangent.row(n - 1) = moved.transpose();
    const Vector g = map.linearize(at)->apply_adjoint(flatten(cotangent));
    delta = unflatten(g, n, d);
  }
  return best;
}

TEST(Deviation, IsWorkedByHandForOneFeature) {
  // d = 1, n = 3: attention (4p + 1)·2²·3·½ = 6(4p + 1), MLP 2·3 with relu
  LayerWeights w = test::scalar_layer(
      {.query = 2, .value = 3, .output = 0.5, .up = 2, .down = 3});
  const Matrix x = (Matrix(3, 1) << 0.5, -1, 2).finished();
  Stack stack{.layers = {w}, .context = 3};
  const double p = kim21_phi_inverse(3);
  const Deviation one(stack);
  EXPECT_NEAR(one.gain(one.at(x), 3, 0.1)->value(), (1 + 6 * (4 * p + 1)) * 7,
              1e-6);
  EXPECT_EQ(one.name(), "l2_row_sums");
  // a token by itself: p = 0
  EXPECT_NEAR(one.gain(one.at(x), 1, 0.1)->value(), 49, 1e-6);

  // two features, LayerNorm of gain 2 after both: the variances are those of
  // what is summed, less what a change of 0.1 can take from them
  w.attention.query = w.attention.value = Matrix::Identity(2, 2);
  w.attention.output = Matrix::Zero(2, 2);
  w.mlp = {.up = Matrix::Zero(2, 1), .down = Matrix::Zero(1, 2)};
  w.norm = NormPlace::post;
  w.attention_norm = {.gain = Vector::Constant(2, 2.0), .epsilon = 0.25};
  w.mlp_norm = w.attention_norm;
  stack.layers = {w};
  const Deviation normed(stack);
  const Matrix y = (Matrix(1, 2) << 3, -1).finished();  // σ = 2
  const double first =
      2 / std::sqrt(std::pow(2 - 0.1 / std::sqrt(2.0), 2) + 0.25);
  const double sigma = 2 * 2 / std::sqrt(4.25);  // after the first norm
  const double second =
      2 / std::sqrt(std::pow(sigma - 0.1 * first / std::sqrt(2.0), 2) + 0.25);
  EXPECT_NEAR(normed.gain(normed.at(y), 1, 0.1)->value(), first * second, 1e-6);
}

TEST(Deviation, IsNeverExceededByWhatAChangeDoes) {
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const NormPlace place :
         {NormPlace::none, NormPlace::pre, NormPlace::post})
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const Stack stack = some_stack(kind, place, seed);
        const Deviation deviation(stack);
        const MapPtr<double> map = stack_map(stack, 1);
        const Matrix x = gaussian(5, 4, Rng(seed).split(20));
        const StatesAlong states = deviation.at(x);
        EXPECT_LT((states.last - (*map)(x)).norm(), 1e-12 * states.last.norm());
        double before = 0.0;
        for (const double r : {1e-4, 0.05, 0.5, 3.0})
          for (const Index n : {1, 5}) {
            const double above = deviation.gain(states, n, r)->log10();
            EXPECT_LE(std::log10(largest_move(*map, x.topRows(n), r,
                                              Rng(seed).split(21))),
                      above)
                << name_of(kind) << " " << name_of(place) << " " << r;
            if (n == 5) {
              EXPECT_GE(above, before);
              before = above;
            }
          }
      }
}

// what pretrained models have beside the forms above
struct Form {
  const char* name;
  void (*change)(LayerWeights& layer, const Rng& rng);
};
const Form forms[] = {
    {"rotary positions",
     [](LayerWeights& w, const Rng&) { w.rope = Rotary{.theta = 20.0}; }},
    {"q/k-norm of each head",
     [](LayerWeights& w, const Rng& rng) {
       w.query_key_norm =
           QueryKeyNorm{.query_gain = flatten(gaussian(1, 2, rng.split(30))),
                        .key_gain = flatten(gaussian(1, 2, rng.split(31))),
                        .epsilon = 0.05};
     }},
    {"q/k-norm of all heads, rotated",
     [](LayerWeights& w, const Rng& rng) {
       w.rope = Rotary{.theta = 20.0};
       w.query_key_norm =
           QueryKeyNorm{.query_gain = flatten(gaussian(1, 4, rng.split(30))),
                        .key_gain = flatten(gaussian(1, 4, rng.split(31))),
                        .epsilon = 0.05,
                        .over_heads = true};
     }},
    {"a gated MLP",
     [](LayerWeights& w, const Rng& rng) {
       w.mlp.gate = 0.5 * gaussian(4, 6, rng.split(32));
     }},
    {"RMS norms",
     [](LayerWeights& w, const Rng&) {
       w.attention_norm.kind = w.mlp_norm.kind = NormWeights::Kind::rms;
     }},
    {"attention and MLP beside each other",
     [](LayerWeights& w, const Rng&) { w.parallel = true; }},
    {"norms of what is added",
     [](LayerWeights& w, const Rng& rng) {
       w.attention_output_norm = some_norm(4, rng.split(33));
       w.mlp_output_norm = some_norm(4, rng.split(34));
     }},
    {"no norm ahead of attention",
     [](LayerWeights& w, const Rng&) { w.attention_unnormed = true; }},
    {"a factor of what is added",
     [](LayerWeights& w, const Rng&) { w.residual_scale = 1.7; }},
    {"a window", [](LayerWeights& w, const Rng&) { w.mask.window = 2; }},
    {"no causal mask",
     [](LayerWeights& w, const Rng&) { w.mask = Mask::none; }},
    {"grouped heads", [](LayerWeights& w, const Rng&) {
       w.attention.key_heads = 1;
       w.attention.key = Matrix(w.attention.key.leftCols(2));
       w.attention.value = Matrix(w.attention.value.leftCols(2));
       w.attention.key_bias = Vector(w.attention.key_bias.head(2));
       w.attention.value_bias = Vector(w.attention.value_bias.head(2));
     }}};

// One layer, where attention or the MLP does nearly all that is done: the bound
// on the other cannot hide what is wrong with it.
TEST(Deviation, IsNotExceededInTheFormsOfPretrainedLayers) {
  for (const Form& form : forms)
    for (const bool attention : {true, false})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Stack stack = some_stack(Kind::dot, NormPlace::pre, seed);
        stack.layers.resize(1);
        stack.last_norm.reset();
        LayerWeights& w = stack.layers[0];
        w.attention.value *= attention ? 20.0 : 0.01;
        w.mlp.down *= attention ? 0.01 : 20.0;
        form.change(w, Rng(seed).split(40));
        const Deviation deviation(stack);
        EXPECT_EQ(deviation.unbounded(), "") << form.name;
        const MapPtr<double> map = stack_map(stack, 1);
        const Matrix x = gaussian(5, 4, Rng(seed).split(20));
        const StatesAlong states = deviation.at(x);
        EXPECT_LT((states.last - (*map)(x)).norm(), 1e-12 * states.last.norm())
            << form.name;
        for (const double r : {1e-4, 0.05, 0.5}) {
          const auto above = deviation.gain(states, 5, r);
          ASSERT_TRUE(above) << form.name;
          EXPECT_LE(std::log10(largest_move(*map, x, r, Rng(seed).split(21))),
                    above->log10())
              << form.name << " " << attention << " " << r;
        }
      }
}

// what stands between the last state and the head of BERT
TEST(Deviation, GoesThroughTheTransformOfAHead) {
  // one token, no layers that do anything: relu of 3x + (1, −9), then a norm
  LayerWeights w = test::scalar_layer({});
  w.attention.query = w.attention.value = Matrix::Identity(2, 2);
  w.attention.output = Matrix::Zero(2, 2);
  w.mlp = {.up = Matrix::Zero(2, 1), .down = Matrix::Zero(1, 2)};
  w.mask = Mask::none;
  Stack stack{.layers = {w}, .context = 1};
  stack.transform = HeadTransform{
      .dense = {.up = 3 * Matrix::Identity(2, 2),
                .down = Matrix::Identity(2, 2),
                .up_bias = Vector{{1.0, -9.0}},
                .activation = Activation::relu},
      .norm = {.gain = Vector::Constant(2, 2.0), .epsilon = 0.25}};
  const Deviation deviation(stack);
  const Matrix x = (Matrix(1, 2) << 1, 2).finished();  // (4, 0): σ = 2
  const double sigma = 2 - 3 * 0.1 / std::sqrt(2.0);
  EXPECT_NEAR(deviation.gain(deviation.at(x), 1, 0.1)->value(),
              3 * 2 / std::sqrt(sigma * sigma + 0.25), 1e-6);
  const Matrix last = deviation.at(x).last;
  EXPECT_NEAR(last(0, 0), 2 * 2 / std::sqrt(4.25), 1e-12);
  EXPECT_LT((last - (*stack_map(stack, 1))(x)).norm(), 1e-12);
}

TEST(Deviation, ListsItsParts) {
  // the layer that is worked by hand above: attention 6(4p + 1), MLP 6
  const LayerWeights w = test::scalar_layer(
      {.query = 2, .value = 3, .output = 0.5, .up = 2, .down = 3});
  const Deviation deviation(Stack{.layers = {w}, .context = 3});
  const Matrix x = (Matrix(3, 1) << 0.5, -1, 2).finished();
  const auto parts = deviation.parts(deviation.at(x), 3, 0.1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part, "attention");
  EXPECT_NEAR(parts[0].log10, std::log10(6 * (4 * kim21_phi_inverse(3) + 1)),
              1e-6);
  EXPECT_EQ(parts[1].part, "mlp");
  EXPECT_EQ(parts[1].layer, 0);
  EXPECT_NEAR(parts[1].log10, std::log10(6.0), 1e-6);
}

TEST(Deviation, NamesThePartOfWhichNothingIsProved) {
  Stack stack = some_stack(Kind::dot, NormPlace::pre, 1);
  stack.layers[1].kind = Kind::sigmoid;
  const Deviation deviation(stack);
  EXPECT_EQ(deviation.unbounded(),
            "layer 1, attention: nothing is proved of sigmoid attention token "
            "by token");
  const StatesAlong states = deviation.at(gaussian(5, 4, Rng(2)));
  EXPECT_FALSE(deviation.gain(states, 5, 1e-9));
}

TEST(Deviation, IsNearWhereThereIsLittleToLose) {
  // one token, one head, one feature wide: products of norms are exact
  const LayerWeights w = test::scalar_layer({});
  const Stack stack{.layers = {w, w}, .context = 1};
  const Deviation deviation(stack);
  const double above = deviation.gain(deviation.at(scalar(1)), 1, 0.1)->value();
  const double found =
      largest_move(*stack_map(stack, 1), scalar(1), 0.1, Rng(1));
  EXPECT_NEAR(found, 16.0, 1e-9);
  EXPECT_NEAR(above, 16.0, 1e-6);
}

TEST(Deviation, OfABeginningDoesNotLookAtTheRest) {
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const NormPlace place :
         {NormPlace::none, NormPlace::pre, NormPlace::post}) {
      const Deviation deviation(some_stack(kind, place, 1));
      const Matrix x = gaussian(5, 4, Rng(2));
      for (const Index n : {1, 3})
        EXPECT_NEAR(deviation.gain(deviation.at(x), n, 0.1)->log10(),
                    deviation.gain(deviation.at(x.topRows(n)), n, 0.1)->log10(),
                    1e-9);
    }
}

TEST(Deviation, SaysNothingOfUntiedL2) {
  const Deviation deviation(some_stack(Kind::l2_untied, NormPlace::post, 1));
  const StatesAlong states = deviation.at(gaussian(5, 4, Rng(2)));
  EXPECT_FALSE(deviation.gain(states, 5, 1e-9));
  EXPECT_EQ(deviation.name(), "");
  EXPECT_EQ(deviation.unbounded(),
            "layer 0, attention: nothing is proved of l2-untied attention");
}

}  // namespace deviation_test
}  // namespace lipscope
