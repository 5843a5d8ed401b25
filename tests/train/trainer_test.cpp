#include "lipscope/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/train/layer_constants.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/next_token.h"
#include "tests/io/test_files.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace trainer_test {

TEST(Schedule, RisesAndThenFallsAsTheInverseRoot) {
  const Schedule s{.rate = 0.5, .warmup = 4};
  EXPECT_DOUBLE_EQ(s.at(1), 0.125);
  EXPECT_DOUBLE_EQ(s.at(4), 0.5);
  EXPECT_DOUBLE_EQ(s.at(16), 0.25);
  const Schedule fixed{
      .rate = 0.5, .warmup = 0, .after = Schedule::After::fixed};
  EXPECT_DOUBLE_EQ(fixed.at(1), 0.5);
  EXPECT_DOUBLE_EQ(fixed.at(1000), 0.5);
}

TEST(Schedule, FallsOnALineThatIsZeroAfterTheLastStep) {
  const Schedule s{
      .rate = 0.5, .warmup = 4, .after = Schedule::After::linear, .steps = 13};
  EXPECT_DOUBLE_EQ(s.at(2), 0.25);
  EXPECT_DOUBLE_EQ(s.at(4), 0.5);
  EXPECT_DOUBLE_EQ(s.at(9), 0.25);
  EXPECT_DOUBLE_EQ(s.at(13), 0.05);
  EXPECT_DOUBLE_EQ(s.at(14), 0.0);
  EXPECT_DOUBLE_EQ(s.at(100), 0.0);
}

// by hand: at t = 1 m̂ = g and v̂ = g², so that every entry moves by the rate
TEST(AdamW, MovesByTheRateAndDecaysMatricesAlone) {
  Layout layout;
  layout.add_matrix("m", 1, 2);
  layout.add_row("b", 1, 0.0);
  VectorOf<float> weights(3), gradients(3);
  weights << 1, 1, 1;
  gradients << 3, -3, 3;
  AdamMoments moments{VectorOf<float>::Zero(3), VectorOf<float>::Zero(3)};
  adamw_step(layout, weights, gradients, moments, 1, 0.1, 1.0,
             {.weight_decay = 0.5});
  EXPECT_NEAR(weights[0], 0.85, 1e-6);
  EXPECT_NEAR(weights[1], 1.05, 1e-6);
  EXPECT_NEAR(weights[2], 0.9, 1e-6);
  EXPECT_NEAR(moments.first[0], 0.3, 1e-6);
  EXPECT_NEAR(moments.second[0], 0.009, 1e-6);
}

TEST(Corpus, CutsTheTextAndNumbersItsCharacters) {
  const Corpus c = corpus_of(sentences(200), 8, "text");
  EXPECT_EQ(c.train.size(), 180u);
  EXPECT_EQ(c.valid.size(), 10u);
  EXPECT_EQ(c.test.size(), 10u);
  EXPECT_EQ(c.vocabulary.decode(c.train), sentences(200).substr(0, 180));
  EXPECT_THROW(c.vocabulary.encode("Q", "text"), InputError);
}

TEST(Corpus, RefusesWhatNothingCanBeLearntFrom) {
  EXPECT_THROW(corpus_of("", 8, "text"), InputError);
  EXPECT_THROW(corpus_of("a", 8, "text"), InputError);
  EXPECT_THROW(corpus_of(std::string(1000, 'a'), 8, "text"), InputError);
  EXPECT_THROW(corpus_of(sentences(200), 10, "text"), InputError);
  EXPECT_THROW(corpus_of("a\xff" + sentences(1000), 8, "text"), InputError);
}

TEST(Windows, HaveEveryCharacterButTheFirstAsATargetOnce) {
  std::vector<int> text(23);
  for (int i = 0; i < 23; ++i) text[i] = i;
  std::vector<int> targets;
  for (const Batch& b : all_windows(text, 2, 5)) {
    EXPECT_LE(b.sequences, 2);
    ASSERT_EQ(b.characters.size(),
              static_cast<std::size_t>(b.sequences * b.length));
    for (std::size_t i = 0; i < b.targets.size(); ++i) {
      EXPECT_EQ(b.targets[i], b.characters[i] + 1);
      targets.push_back(b.targets[i]);
    }
  }
  EXPECT_EQ(targets, std::vector<int>(text.begin() + 1, text.end()));
}

class TrainingBy : public testing::TestWithParam<Precision> {};

TEST_P(TrainingBy, LearnsATextThatRepeats) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  for (const Mixer mixer : all_mixers) {
    Trainer trainer(tiny(mixer, corpus),
                    {.batch = 8,
                     .schedule = {.rate = 2e-2, .warmup = 10},
                     .products = GetParam()});
    TrainingState state = trainer.initial();
    const double before =
        score_of(trainer.model(), state.weights, corpus.valid, 1).nll;
    for (int i = 0; i < 60; ++i) trainer.step(state, corpus.train);
    const double after =
        score_of(trainer.model(), state.weights, corpus.valid, 1).nll;
    // of 13 equally likely characters: log 13 = 2.56
    EXPECT_GT(before, 2.0) << name_of(mixer);
    EXPECT_LT(after, mixer == Mixer::contractive_l2 ? 2.0 : 1.0)
        << name_of(mixer);
  }
}

TEST_P(TrainingBy, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Corpus corpus = corpus_of(sentences(2000), 64, "text");
  for (const Mixer mixer : all_mixers) {
    LanguageModelConfig config = tiny(mixer, corpus);
    config.context = 64;
    VectorOf<float> first;
    for (const int threads : {1, 2, 3}) {
      // more rows than one piece has
      Trainer trainer(config, {.batch = 20,
                               .dropout = 0.1,
                               .products = GetParam(),
                               .threads = threads});
      TrainingState state = trainer.initial();
      for (int i = 0; i < 2; ++i) trainer.step(state, corpus.train);
      if (threads == 1) first = state.weights;
      EXPECT_TRUE(state.weights == first)
          << name_of(mixer) << ", " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, TrainingBy, testing::ValuesIn(all_precisions),
                         [](const auto& p) { return name_of(p.param); });

// of a step of bf16 products: another direction than that of all bits, by no
// more than eight bits explain
TEST(Training, HasNearlyTheSameGradientsOfFewerBits) {
  const Corpus corpus = corpus_of(sentences(2000), 64, "text");
  for (const Mixer mixer : all_mixers) {
    VectorOf<float> full;
    for (const Precision precision : all_precisions) {
      LanguageModelConfig config = tiny(mixer, corpus);
      config.context = 64;
      Trainer trainer(config, {.products = precision});
      TrainingState state = trainer.initial();
      trainer.step(state, corpus.train);
      if (precision == Precision::full) full = trainer.gradients();
      const double off = (trainer.gradients() - full).norm() / full.norm();
      EXPECT_LT(off, precision == Precision::bf16 ? 0x1p-4 : 0x1p-10)
          << name_of(mixer) << ", " << name_of(precision);
      // what was asked for is what was done
      if (precision == Precision::bf16) {
        EXPECT_EQ(off > 0, products_in_words(precision) != "f32")
            << name_of(mixer);
      }
    }
  }
}

TrainingOptions by_muon() {
  return {.batch = 8,
          .schedule = {.rate = 1e-2,
                       .warmup = 5,
                       .after = Schedule::After::linear,
                       .steps = 60},
          .optimizer = Optimizer::muon,
          .muon = {.by_adamw = {"lm_head.weight"}},
          .threads = 1};
}

TEST(MuonTraining, LearnsATextThatRepeats) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  for (const Mixer mixer : {Mixer::dot, Mixer::l2}) {
    Trainer trainer(tiny(mixer, corpus), by_muon());
    TrainingState state = trainer.initial();
    for (int i = 0; i < 60; ++i) trainer.step(state, corpus.train);
    EXPECT_LT(score_of(trainer.model(), state.weights, corpus.valid, 1).nll,
              1.0)
        << name_of(mixer);
  }
}

TEST(MuonTraining, MovesMatricesByMuonAndTheRestByAdamW) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  TrainingOptions options = by_muon();
  options.schedule.warmup = 1;
  Trainer trainer(tiny(Mixer::dot, corpus), options);
  TrainingState state = trainer.initial();
  const VectorOf<float> before = state.weights;
  trainer.step(state, corpus.train);
  const Layout& layout = trainer.model().layout();
  const auto moved = [&](const char* name) {
    const Slot s = layout.slot(name);
    return MatrixOf<float>(tensor(state.weights, s) - tensor(before, s));
  };
  // Muon: 16 singular values of 0.02 times 0.68 to 1.21
  const double by_muon_norm = moved("h.0.mlp.up.weight").norm();
  EXPECT_GT(by_muon_norm, 0.02 * 0.6 * 4);
  EXPECT_LT(by_muon_norm, 0.02 * 1.3 * 4);
  EXPECT_EQ(
      tensor(state.moments.second, layout.slot("h.0.mlp.up.weight")).norm(),
      0.0f);
  // Adam's first step: each entry moves by its rate of 0.01, and decays
  for (const char* name : {"lm_head.weight", "wte.weight"}) {
    EXPECT_NEAR(moved(name).cwiseAbs().maxCoeff(), 0.01, 2e-4) << name;
    EXPECT_GT(tensor(state.moments.second, layout.slot(name)).norm(), 0.0f);
  }
}

TEST(MuonTraining, GoesOnFromACheckpointWithTheSameBits) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  const TemporaryFolder folder;
  Trainer whole(tiny(Mixer::l2, corpus), by_muon());
  const Layout& layout = whole.model().layout();
  TrainingState state = whole.initial();
  for (int i = 0; i < 6; ++i) {
    if (i == 3) write_checkpoint(folder.path(), layout, {.state = state});
    whole.step(state, corpus.train);
  }
  Trainer again(tiny(Mixer::l2, corpus), by_muon());
  TrainingState resumed = read_checkpoint(folder.path(), layout)->state;
  EXPECT_EQ(resumed.step, 3);
  for (int i = 0; i < 3; ++i) again.step(resumed, corpus.train);
  EXPECT_TRUE(resumed.weights == state.weights);
  EXPECT_TRUE(resumed.moments.first == state.moments.first);
  EXPECT_TRUE(resumed.moments.second == state.moments.second);
}

TEST(MuonTraining, RefusesOptionsWithoutSense) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  const LanguageModelConfig config = tiny(Mixer::dot, corpus);
  TrainingOptions unknown = by_muon(), backwards = by_muon();
  unknown.muon.by_adamw = {"head"};
  EXPECT_THROW(Trainer(config, unknown), std::invalid_argument);
  backwards.schedule.steps = 4;
  EXPECT_THROW(Trainer(config, backwards), std::invalid_argument);
}

TEST(Training, SaysWhenItDiverges) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  Trainer trainer(tiny(Mixer::lstm, corpus), {.batch = 2, .threads = 1});
  TrainingState state = trainer.initial();
  state.weights[0] = NAN;
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) trainer.step(state, corpus.train);
      },
      RunError);
}

TEST(Sample, OfTemperatureZeroRepeatsWhatWasLearnt) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  Trainer trainer(
      tiny(Mixer::dot, corpus),
      {.batch = 8, .schedule = {.rate = 2e-2, .warmup = 10}, .threads = 1});
  TrainingState state = trainer.initial();
  for (int i = 0; i < 150; ++i) trainer.step(state, corpus.train);
  const NextToken next = next_token(trainer.model(), state.weights);
  const std::string written = corpus.vocabulary.decode(
      sample(next, 16, corpus.vocabulary.encode("the quiet ri", "prompt"),
             {.length = 20, .temperature = 0, .threads = 1}));
  EXPECT_EQ(written, sentences(200).substr(12, 20));

  // with a temperature, by the seed
  const auto drawn = [&](std::uint64_t seed) {
    return sample(
        next, 16, {0},
        {.length = 30, .temperature = 3.0, .seed = seed, .threads = 1});
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(LayerConstants, StayBelowTheirBounds) {
  const Corpus corpus = corpus_of(sentences(1000), 16, "text");
  for (const Mixer mixer : all_mixers) {
    LanguageModel<float> model(tiny(mixer, corpus));
    const auto weights = model.layout().initial<float>(1);
    const auto found = layer_constants(
        model, weights, std::span(corpus.valid).first(12), {.threads = 1});
    EXPECT_EQ(found.size(), mixer == Mixer::lstm ? 0u : 2u);
    for (const LayerConstant& c : found) {
      EXPECT_TRUE(c.measured.converged);
      EXPECT_GT(c.measured.lower, 0.0);
      EXPECT_EQ(c.above.has_value(), mixer != Mixer::l2_untied);
      if (c.above) {
        EXPECT_LE(c.measured.lower, c.above->value);
      }
    }
  }
}

}  // namespace trainer_test
}  // namespace lipscope::test
