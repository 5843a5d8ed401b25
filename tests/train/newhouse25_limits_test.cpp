#include "lipscope/train/newhouse25_limits.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>

#include "lipscope/theory/newhouse25.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/trainer.h"
#include "lipscope/train/zero_outputs.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace newhouse25_limits_test {

LanguageModelConfig theirs() {
  LanguageModelConfig c = little(Mixer::dot, NormPlace::none);
  c.width = 8;
  c.hidden = 32;
  c.positions = Positions::rotary;
  c.join = Join::convex;
  c.join_share = 0.25;
  return c;
}

double norm(const LanguageModel<float>& model, const VectorOf<float>& weights,
            const std::string& name, Index first = 0, Index cols = 0) {
  const auto w = tensor(weights, model.layout().slot(name)).cast<double>();
  const Matrix part = cols == 0 ? Matrix(w) : Matrix(w.middleCols(first, cols));
  return Eigen::JacobiSVD<Matrix>(part).singularValues()[0];
}

// width 8, 2 heads of 4, hidden 32
TEST(Newhouse25Limits, AreThoseOfTheirFile) {
  const LanguageModel<float> model(theirs());
  VectorOf<float> weights =
      (5.0f * model.layout().initial<float>(3)).array() + 0.5f;
  keep_newhouse25_limits(model, weights, SingularValues::normalise, 1);
  for (const std::string layer : {"h.0.", "h.1."}) {
    for (const char* bias : {"mlp.up.bias", "mlp.down.bias"})
      EXPECT_EQ(tensor(weights, model.layout().slot(layer + bias)).norm(), 0)
          << layer << bias;
    for (const Index part : {0, 1})
      EXPECT_NEAR(norm(model, weights, layer + "attn.qkv.weight", 8 * part, 8),
                  1 / std::sqrt(2.0), 1e-3);
    EXPECT_NEAR(norm(model, weights, layer + "attn.qkv.weight", 16, 8), 1.0 / 3,
                1e-3);
    EXPECT_NEAR(norm(model, weights, layer + "attn.o.weight"), 1.0, 1e-3);
    EXPECT_NEAR(norm(model, weights, layer + "mlp.up.weight"), 2.0, 2e-3);
    EXPECT_NEAR(norm(model, weights, layer + "mlp.down.weight"), 0.5 / 1.1290,
                1e-3);
  }
}

// With all norms 1 between root mean squares and r = 1: attention (1 + 2)/3,
// MLP 1/1.129, r falls to 3/4 + 1/4·1/3 in attention and by the MLP's factor.
TEST(Newhouse25Formula, IsWorkedByHand) {
  LanguageModelConfig c = theirs();
  c.layers = 1;
  const LanguageModel<float> model(c);
  VectorOf<float> weights = model.layout().initial<float>(3);
  keep_newhouse25_limits(model, weights, SingularValues::normalise, 1);
  const double head =
      norm(model, weights, "lm_head.weight") * std::sqrt(8.0 / 5.0);
  const double mlp = 0.75 + 0.25 / 1.1290;
  EXPECT_NEAR(newhouse25_formula(stack_of(model, weights)), mlp * head,
              2e-3 * head);
  // half as long tokens: (1 + 2/4)/3
  EXPECT_NEAR(newhouse25_formula(stack_of(model, weights), 0.5),
              (0.75 + 0.25 * 0.5) * mlp * head, 2e-3 * head);
  c.layers = 2;
  const LanguageModel<float> two(c);
  VectorOf<float> deeper = two.layout().initial<float>(3);
  keep_newhouse25_limits(two, deeper, SingularValues::normalise, 1);
  const double r = (0.75 + 0.25 / 3) * mlp;
  const double second = 0.75 + 0.25 * (1 + 2 * r * r) / 3;
  const double last = norm(two, deeper, "lm_head.weight") * std::sqrt(1.6);
  EXPECT_NEAR(newhouse25_formula(stack_of(two, deeper)),
              mlp * second * mlp * last, 2e-3 * last);
}

TEST(Newhouse25Formula, RefusesOtherModels) {
  const LanguageModel<float> normed(little(Mixer::dot, NormPlace::post));
  EXPECT_THROW(
      newhouse25_formula(stack_of(normed, normed.layout().initial<float>(1))),
      std::invalid_argument);
}

TrainingOptions their_training() {
  TrainingOptions t{.batch = 4,
                    .schedule = {.rate = 1e-2, .warmup = 0},
                    .optimizer = Optimizer::muon,
                    .zero_outputs = true,
                    .threads = 1};
  t.limits.rule = SingularValues::soft;
  t.limits.matrices = MatrixLimits::newhouse25;
  t.limits.longest_token = std::sqrt(8.0);
  t.limits.lipschitz = 3.0;
  t.limits.norm = Norm::token;
  return t;
}

TEST(ZeroOutputs, BeginAtZeroAndLearn) {
  Trainer trainer(theirs(), their_training());
  TrainingState state = trainer.initial();
  const Layout& layout = trainer.model().layout();
  for (const std::string name : {"h.0.attn.o.weight", "h.1.mlp.down.weight"}) {
    EXPECT_TRUE(tensor(state.weights, layout.slot(name)).isZero(0.0)) << name;
  }
  EXPECT_FALSE(
      tensor(state.weights, layout.slot("h.0.attn.qkv.weight")).isZero(0.0));
  const std::vector<int> text = {0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0, 1, 2, 3};
  trainer.step(state, text);
  for (const std::string name : {"h.0.attn.o.weight", "h.1.mlp.down.weight"})
    EXPECT_FALSE(tensor(state.weights, layout.slot(name)).isZero(0.0)) << name;
  const VectorOf<float> first = state.weights;
  trainer.step(state, text);
  const Slot values = layout.slot("h.0.attn.qkv.weight");
  EXPECT_NE(tensor(state.weights, values), tensor(first, values));
}

TEST(ZeroOutputs, AreRefusedWhereNothingWouldComeThrough) {
  LanguageModelConfig c = theirs();
  EXPECT_EQ(objection_to_zero_outputs(c, {}), "");
  c.join = Join::none;
  EXPECT_NE(objection_to_zero_outputs(c, {}).find("residual"),
            std::string::npos);
  c = little_apart(Mixer::dot, Join::add);
  EXPECT_NE(objection_to_zero_outputs(c, {}).find("apart"), std::string::npos);
  c = little(Mixer::contractive_l2, NormPlace::post);
  EXPECT_NE(objection_to_zero_outputs(c, {}), "");
  c = little(Mixer::l2, NormPlace::none);
  EXPECT_NE(objection_to_zero_outputs(c, {.lipschitz = 3.0}), "");
  EXPECT_THROW(
      Trainer(little(Mixer::lstm, NormPlace::none), {.zero_outputs = true}),
      std::invalid_argument);
}

TEST(Newhouse25Limits, AreRefusedToOtherModels) {
  EXPECT_EQ(objection_to_newhouse25(theirs()), "");
  EXPECT_NE(objection_to_newhouse25(little(Mixer::l2, NormPlace::none)), "");
  LanguageModelConfig c = theirs();
  c.activation = Activation::max_min;
  EXPECT_NE(objection_to_newhouse25(c), "");
}

}  // namespace newhouse25_limits_test
}  // namespace lipscope::test
