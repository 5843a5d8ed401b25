// Gradients of every layer and variant against finite differences, in f64.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/train/cross_entropy.h"
#include "lipscope/train/dropout.h"
#include "lipscope/train/language_model.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace gradient_test {

const std::vector<int> text = {0, 3, 1, 4, 2, 2, 0, 1, 3, 4};
const std::vector<int> next = {3, 1, 4, 2, 0, 0, 1, 3, 4, 1};

double loss(LanguageModel<double>& model, const Vector& weights,
            const Pass& pass) {
  return cross_entropy(model.forward(weights, text, pass), next) /
         static_cast<double>(text.size());
}

// weights away from the initial zeros and ones, so that every term counts
Vector weights_of(const LanguageModel<double>& model) {
  Vector weights = model.layout().initial<double>(3);
  return weights + 0.2 * random_direction(weights.size(), Rng(4)) *
                       std::sqrt(static_cast<double>(weights.size()));
}

void expect_gradients(const LanguageModelConfig& config, double dropout = 0) {
  LanguageModel<double> model(config);
  const Pass pass{.sequences = 2,
                  .length = 5,
                  .threads = 1,
                  .dropout = dropout,
                  .noise = Rng(11)};
  const Vector weights = weights_of(model);
  Vector gradients;
  loss(model, weights, pass);
  model.backward(weights, gradients, text, next, pass);

  // of each tensor by itself, along a random direction
  for (std::size_t i = 0; i < model.layout().tensors().size(); ++i) {
    const auto& [name, slot, initial, matrix, blocks] =
        model.layout().tensors()[i];
    Vector direction = Vector::Zero(weights.size());
    direction.segment(slot.offset, slot.size()) =
        random_direction(slot.size(), Rng(5).split(i));
    const double step = 1e-5;
    const double numeric = (loss(model, weights + step * direction, pass) -
                            loss(model, weights - step * direction, pass)) /
                           (2 * step);
    const double exact = gradients.dot(direction);
    EXPECT_NEAR(exact, numeric, 1e-9 + 1e-6 * std::abs(numeric))
        << name_of(config.mixer) << " " << name_of(config.norm) << " " << name;
    EXPECT_NE(exact, 0.0) << name;
    EXPECT_NE(exact, numeric) << name;
  }
}

TEST(Gradients, AreFiniteDifferencesOfTheLoss) {
  for (const Mixer mixer : all_mixers)
    for (const NormPlace norm :
         {NormPlace::post, NormPlace::pre, NormPlace::none})
      expect_gradients(little(mixer, norm));
}

TEST(Gradients, FlowThroughWhatAnInvertibleModelIsDividedBy) {
  expect_gradients(little_invertible());
  LanguageModelConfig relu = little_invertible();
  relu.activation = Activation::relu;
  expect_gradients(relu);
}

TEST(Gradients, FlowThroughWhatEachCoordinateIsDividedBy) {
  for (const NormPlace norm :
       {NormPlace::post, NormPlace::pre, NormPlace::none}) {
    LanguageModelConfig config = little_by_coordinate(norm);
    expect_gradients(config);
    config.positions = Positions::table;
    expect_gradients(config);
  }
  LanguageModelConfig longer = little_by_coordinate(NormPlace::post);
  longer.context = 9;
  expect_gradients(longer);
  LanguageModelConfig invertible = little_invertible();
  invertible.division = Division::coordinate;
  expect_gradients(invertible);
}

TEST(Gradients, AreThoseOfTheEntriesThatDropoutLeft) {
  expect_gradients(little(Mixer::dot, NormPlace::post), 0.3);
  expect_gradients(little(Mixer::lstm, NormPlace::post), 0.3);
}

TEST(Gradients, AreThoseOfRelu) {
  LanguageModelConfig config = little(Mixer::l2, NormPlace::pre);
  config.activation = Activation::relu;
  expect_gradients(config);
}

TEST(Gradients, AreThoseOfHeadsThatStandApart) {
  for (const Mixer mixer :
       {Mixer::position, Mixer::dot, Mixer::l2, Mixer::l2_untied})
    for (const Join join : all_joins)
      expect_gradients(little_apart(mixer, join));
  expect_gradients(little_apart(Mixer::dot, Join::convex), 0.3);
}

LanguageModelConfig relative(LanguageModelConfig config) {
  config.positions = Positions::relative;
  return config;
}

TEST(Gradients, AreThoseOfRelativePositions) {
  for (const Mixer mixer : {Mixer::dot, Mixer::l2, Mixer::l2_untied}) {
    expect_gradients(relative(little(mixer, NormPlace::pre)));
    expect_gradients(relative(little_apart(mixer, Join::convex)));
    // longer than what a sequence has, and in tiles
    LanguageModelConfig longer = relative(little(mixer, NormPlace::none));
    longer.context = 9;
    expect_gradients(longer);
  }
}

TEST(Dropout, ZeroesItsShareAndKeepsTheMean) {
  MatrixOf<double> x = MatrixOf<double>::Ones(700, 100);
  dropout(x, 0, {.dropout = 0.25, .noise = Rng(1)});
  const double zeros = static_cast<double>((x.array() == 0).count());
  EXPECT_NEAR(zeros / 70000, 0.25, 4 * std::sqrt(0.25 * 0.75 / 70000));
  EXPECT_NEAR(x.maxCoeff(), 1 / 0.75, 1e-12);
  EXPECT_NE(x.topRows(100), x.middleRows(512, 100));
}

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const MatrixOf<double> logits = MatrixOf<double>::Constant(3, 7, 2.5);
  const std::vector<int> targets = {0, 3, 6};
  EXPECT_NEAR(cross_entropy(logits, targets), 3 * std::log(7.0), 1e-14);
}

// the layer that learns is the map that is measured
TEST(AttentionLayer, IsTheMapOfItsWeights) {
  for (const Mixer mixer :
       {Mixer::dot, Mixer::l2, Mixer::l2_untied, Mixer::contractive_l2})
    for (const bool distances : {false, true}) {
      LanguageModelConfig config = little(mixer, NormPlace::none);
      if (distances) config = relative(config);
      if (distances && mixer == Mixer::contractive_l2)
        config.division = Division::coordinate;
      LanguageModel<double> model(config);
      Layout layout;
      AttentionLayer<double> layer(layout, "a",
                                   model.mixing()[1]->attention()->shape());
      const Vector own = 0.5 * random_direction(layout.size(), Rng(6)) *
                         std::sqrt(static_cast<double>(layout.size()));
      const Matrix x = gaussian(10, 6, Rng(7));
      const Matrix y = layer.forward(own, x, {.sequences = 2, .length = 5});

      AttentionOptions how{.kind = layer.shape().kind,
                           .mask = Mask::causal,
                           .sequences = 2,
                           .relative_bias = layer.exported_relative_bias(own)};
      const Matrix expected =
          MultiHeadAttention<double>(layer.exported(own), how)(x);
      EXPECT_LT((y - expected).norm(), 1e-13 * expected.norm())
          << name_of(mixer);
      EXPECT_GT(expected.norm(), 1e-3);
      EXPECT_EQ(how.relative_bias.has_value(), distances);
      if (!distances) continue;
      how.relative_bias.reset();
      const Matrix without =
          MultiHeadAttention<double>(layer.exported(own), how)(x);
      EXPECT_GT((y - without).norm(), 1e-3 * expected.norm());
    }
}

// what mixes is the sum of the two maps that it is exported as
TEST(MixingLayer, IsTheSumOfTheMapsOfItsWeights) {
  for (const Mixer mixer : {Mixer::position, Mixer::dot, Mixer::l2}) {
    LanguageModel<double> model(little_apart(mixer, Join::none));
    Layout layout;
    MixingLayer<double> layer(layout, "a", model.mixing()[1]->shape());
    const Vector own = 0.5 * random_direction(layout.size(), Rng(6)) *
                       std::sqrt(static_cast<double>(layout.size()));
    const Matrix x = gaussian(10, 6, Rng(7));
    const Matrix y = layer.forward(own, x, {.sequences = 2, .length = 5});

    Matrix expected =
        PositionHeadsMap<double>(*layer.exported_position_heads(own), 2)(x);
    if (mixer != Mixer::position) {
      AttentionOptions how{.kind = layer.shape().attention.kind,
                           .mask = Mask::causal,
                           .sequences = 2};
      if (mixer == Mixer::dot) how.rope = Rotary{};
      expected += MultiHeadAttention<double>(layer.exported(own), how)(x);
    }
    EXPECT_LT((y - expected).norm(), 1e-13 * expected.norm()) << name_of(mixer);
    EXPECT_GT(expected.norm(), 1e-3);
  }
}

// c by hand: H = 1, k = d = 2, n = 2
TEST(Contraction, IsTheBoundOfItsWeights) {
  Matrix q(2, 2), v(2, 2), o(2, 2);
  q << 1, -2, 3, 0.5;  // rows 3, 3.5; columns 4, 2.5
  v << 1, 0, -1, 0.5;  // columns 2, 0.5
  o << 0.25, 1, 0, 2;  // columns 0.25, 3
  const double front = 4 * 0.2784645427610738 + 1 / std::sqrt(2.0);
  const double expected = front * 3 * 3.5 * 4 * 2;
  EXPECT_NEAR(
      contraction<double>({view(std::as_const(q)), view(std::as_const(v)),
                           view(std::as_const(o))},
                          1, 2),
      expected, 1e-9 * expected);
}

}  // namespace gradient_test
}  // namespace lipscope::test
