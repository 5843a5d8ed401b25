#include "lipscope/train/weight_limits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/stack_constant.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/trainer.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace weight_limits_test {

LanguageModelConfig promising() {
  return {.mixer = Mixer::l2,
          .characters = 5,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .context = 6,
          .hidden = 12,
          .norm = NormPlace::none};
}

double certified(const LanguageModel<float>& model,
                 const VectorOf<float>& weights) {
  return stack_constant(stack_of(model, weights)).logits->value();
}

TEST(WeightLimits, BringTheConstantToThePromiseFromAnySize) {
  const LanguageModel<float> model(promising());
  for (const double limit : {1.1, 2.0, 100.0})
    for (const float size : {0.3f, 1.0f, 20.0f}) {
      VectorOf<float> weights = size * model.layout().initial<float>(1);
      const double before = certified(model, weights);
      const VectorOf<float> old = weights;
      keep_within({.lipschitz = limit}, model, weights, 1);
      const double after = certified(model, weights);
      EXPECT_LE(after, limit);
      if (before <= limit)
        EXPECT_EQ(weights, old);
      else
        EXPECT_GT(after, 0.9 * limit) << limit << " " << size;
      EXPECT_NO_THROW(require_within({.lipschitz = limit}, model, weights));
    }
}

TEST(WeightLimits, TakeLittleOffWhatIsALittleAbove) {
  const LanguageModel<float> model(promising());
  VectorOf<float> weights = model.layout().initial<float>(2);
  keep_within({.lipschitz = 10.0}, model, weights, 1);
  const double before = certified(model, weights);
  EXPECT_GT(before, 9.9);
  // as a step of the optimiser might: 0.2 % more of every matrix
  VectorOf<float> grown = 1.002f * weights;
  const VectorOf<float> scaled = grown;
  keep_within({.lipschitz = 10.0}, model, grown, 1);
  EXPECT_LE(certified(model, grown), 10.0);
  EXPECT_GT(certified(model, grown), 9.9);
  // the leading singular value shrank back; the Frobenius norm, which scaling
  // would have taken back as well, did not
  const Slot down = model.layout().slot("h.0.mlp.down.weight");
  const auto size = [&](const VectorOf<float>& w) {
    return tensor(w, down).norm();
  };
  EXPECT_LT(size(grown), size(scaled));
  EXPECT_GT(size(grown), 0.5 * (size(weights) + size(scaled)));
}

// factors 1 + L of a layer and L of the head: cut to one level, attention to
// half of it in logarithms; a part below its level keeps what it has
TEST(WeightLimits, CutTheLargestFactorsToOneLevel) {
  LanguageModelConfig config = promising();
  config.layers = 1;
  const LanguageModel<float> model(config);
  VectorOf<float> weights = 20.0f * model.layout().initial<float>(3);
  const Slot head = model.layout().slot("lm_head.weight");
  tensor(weights, head) *= static_cast<float>(
      1.5 / weight_norm_above(tensor(weights, head).cast<double>()));
  keep_within({.lipschitz = 24.0}, model, weights, 1);
  const StackConstant c = stack_constant(stack_of(model, weights));
  // 1.5 · (1 + L_attn)(1 + L_mlp) = 24 with (1 + L_attn)² = 1 + L_mlp:
  // 1 + L_attn = 16^{1/3}
  EXPECT_NEAR(c.parts[0].value.value(), std::cbrt(16.0) - 1, 1e-3);
  EXPECT_NEAR(c.parts[1].value.value(), std::cbrt(256.0) - 1, 1e-3);
  EXPECT_NEAR(c.parts[2].value.value(), 1.5, 1e-5);
}

TEST(WeightLimits, CapEveryMatrix) {
  const LanguageModel<float> model({.mixer = Mixer::dot,
                                    .characters = 5,
                                    .layers = 1,
                                    .width = 8,
                                    .heads = 2,
                                    .context = 6,
                                    .hidden = 12});
  VectorOf<float> weights = model.layout().initial<float>(4);
  const VectorOf<float> old = weights;
  keep_within({.spectral = 1.0}, model, weights, 1);
  EXPECT_NO_THROW(require_within({.spectral = 1.0}, model, weights));
  EXPECT_THROW(require_within({.spectral = 1.0}, model, old), RunError);
  int capped = 0;
  for (const Layout::Tensor& t : model.layout().tensors()) {
    const Matrix was = tensor(old, t.slot).cast<double>();
    const Matrix is = tensor(weights, t.slot).cast<double>();
    const double norm = weight_norm_above(was);
    if (!t.matrix || norm <= 1.0) {
      EXPECT_EQ(was, is) << t.name;
      continue;
    }
    ++capped;
    EXPECT_LE(weight_norm_above(is), 1.0) << t.name;
    EXPECT_LT((is * norm - was).norm(), 1e-4 * was.norm()) << t.name;
  }
  EXPECT_GE(capped, 3);
}

TEST(WeightLimits, AreKeptAtEveryStepAndOnAnyNumberOfThreads) {
  const Corpus corpus = corpus_of(sentences(2000), 16, "text");
  LanguageModelConfig config = tiny(Mixer::l2, corpus);
  config.norm = NormPlace::none;
  VectorOf<float> first;
  for (const int threads : {1, 2}) {
    Trainer trainer(config, {.batch = 4,
                             .schedule = {.rate = 1e-2, .warmup = 2},
                             .limits = {.lipschitz = 5.0},
                             .threads = threads});
    TrainingState state = trainer.initial();
    EXPECT_LE(certified(trainer.model(), state.weights), 5.0);
    for (int step = 0; step < 12; ++step) {
      trainer.step(state, corpus.train);
      EXPECT_LE(certified(trainer.model(), state.weights), 5.0) << step;
    }
    if (threads == 1)
      first = state.weights;
    else
      EXPECT_EQ(first, state.weights);
  }
}

TEST(WeightLimits, AreNotPromisedWhereTheyCannotBeKept) {
  LanguageModelConfig config = promising();
  const WeightLimits limits{.lipschitz = 10.0};
  EXPECT_EQ(objection(limits, config), "");
  EXPECT_NE(objection({.lipschitz = 1.0}, config), "");
  EXPECT_NE(objection({.spectral = 0.0}, config), "");
  config.norm = NormPlace::post;
  EXPECT_NE(objection(limits, config).find("norm none"), std::string::npos);
  EXPECT_EQ(objection({.spectral = 1.0}, config), "");
  config.norm = NormPlace::none;
  for (const Mixer mixer :
       {Mixer::dot, Mixer::l2_untied, Mixer::contractive_l2, Mixer::lstm}) {
    config.mixer = mixer;
    EXPECT_NE(objection(limits, config).find("take "), std::string::npos);
  }
  EXPECT_THROW(Trainer(config, {.limits = limits}), std::invalid_argument);
}

TEST(WeightLimits, ABrokenPromiseIsAnError) {
  const LanguageModel<float> model(promising());
  const VectorOf<float> weights = model.layout().initial<float>(1);
  const double now = certified(model, weights);
  EXPECT_NO_THROW(require_within({.lipschitz = 1.01 * now}, model, weights));
  EXPECT_THROW(require_within({.lipschitz = 0.99 * now}, model, weights),
               RunError);
}

TEST(WeightLimits, KeepEveryMatrixAtItsNormAndGiveTheHeadTheRest) {
  for (const Mixer mixer : {Mixer::position, Mixer::dot, Mixer::l2})
    for (const Join join : all_joins) {
      const WeightLimits limits{.lipschitz = 3.0,
                                .norm = Norm::token,
                                .longest_token = 2.0,
                                .rule = SingularValues::soft};
      const LanguageModel<float> model(little_apart(mixer, join));
      EXPECT_EQ(objection(limits, model.config()), "");
      VectorOf<float> weights = model.layout().initial<float>(1);
      begin_within(limits, model, weights, 1);
      const auto begun = require_within(limits, model, weights);
      EXPECT_LE(begun->certified, 3.0);
      EXPECT_GT(begun->certified, 2.98);
      EXPECT_NEAR(begun->longest_token, 2.0, 1e-4);
      // a step that makes all of them larger
      weights *= 1.03f;
      EXPECT_THROW(require_within(limits, model, weights), RunError);
      keep_within(limits, model, weights, 1);
      const auto kept = require_within(limits, model, weights);
      EXPECT_LE(kept->certified, 3.0);
      EXPECT_GT(kept->certified, 2.8) << name_of(mixer) << name_of(join);
      EXPECT_LE(kept->longest_token, 2.0);
      // by hand: six features, five characters
      EXPECT_NEAR(kept->certified_rms(), kept->certified * std::sqrt(6.0 / 5.0),
                  1e-12);
      for (const Layout::Tensor& t : model.layout().tensors()) {
        if (!t.matrix || t.name == "lm_head.weight" || of_comparing_heads(t))
          continue;
        for (Index b = 0; b < t.blocks; ++b)
          EXPECT_LE(weight_norm_above(block(weights, t, b).cast<double>()),
                    1.0 + 1e-4)
              << t.name;
      }
      // heads that compare cost no more than their shares: all heads of a layer
      // together have about 1, less where tokens become shorter than guessed
      std::vector<double> squares(2, 0.0);
      for (const StackPart& part :
           stack_constant(stack_of(model, weights),
                          {.norm = Norm::token, .radius = 2.0})
               .parts)
        if (part.part == "attention" || part.part == "position_heads")
          squares[part.layer] += std::pow(part.value.value(), 2);
      for (const double square : squares) {
        EXPECT_LE(square, 1.01) << name_of(mixer);
        EXPECT_GT(square, mixer == Mixer::l2 ? 0.5 : 0.8) << name_of(mixer);
      }
    }
}

TEST(WeightLimits, SayWhatCannotBePromised) {
  const WeightLimits token{.lipschitz = 3.0, .norm = Norm::token};
  const WeightLimits ruled{.lipschitz = 3.0, .rule = SingularValues::soft};
  const auto why = [](const WeightLimits& limits, LanguageModelConfig config) {
    return objection(limits, config);
  };
  EXPECT_NE(why(token, promising()).find("take a rule"), std::string::npos);
  LanguageModelConfig relative = promising();
  relative.positions = Positions::relative;
  EXPECT_NE(why({.lipschitz = 3.0}, relative).find("without relative"),
            std::string::npos);
  EXPECT_NE(why(ruled, little_apart(Mixer::dot, Join::none))
                .find("give the longest token"),
            std::string::npos);
  EXPECT_NE(why(ruled, little_apart(Mixer::l2_untied, Join::none))
                .find("l2-untied has no promised constant"),
            std::string::npos);
  EXPECT_NE(why({.longest_token = 1.0}, little(Mixer::dot, NormPlace::none))
                .find("take positions rotary, relative or none"),
            std::string::npos);
  EXPECT_NE(why(ruled, little(Mixer::position, NormPlace::pre))
                .find("take norm none"),
            std::string::npos);
}

}  // namespace weight_limits_test
}  // namespace lipscope::test
