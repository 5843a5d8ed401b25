#include "lipscope/experiments/learning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "lipscope/core/errors.h"
#include "lipscope/experiments/generated_text.h"
#include "lipscope/train/next_token.h"

namespace lipscope {
namespace learning_test {

Corpus corpus() { return corpus_of(generated_text(2000), 8, "text"); }

TrainingPlan plan(Mixer mixer, double rate = 1e-2) {
  return {.model = {.mixer = mixer,
                    .characters = corpus().vocabulary.size(),
                    .layers = 2,
                    .width = 8,
                    .heads = 2,
                    .context = 8,
                    .hidden = 16},
          .training = {.batch = 2,
                       .schedule = {.rate = rate,
                                    .warmup = 0,
                                    .after = Schedule::After::fixed},
                       .threads = 1},
          .steps = 7,
          .eval_every = 3};
}

const auto silent = [](const std::string&) {};

// the same by the trainer itself
TEST(Learning, KeepsWhatTheTrainerSaw) {
  const Corpus text = corpus();
  const TrainingPlan how = plan(Mixer::l2);
  const TrainingResult result = train_model(how, text, silent);

  Trainer trainer(how.model, how.training);
  TrainingState state = trainer.initial();
  EXPECT_EQ(result.weights, state.weights.size());
  std::vector<Index> evaluated;
  VectorOf<float> best;
  double least = INFINITY, gradients = 0.0, first = 0.0, last = 0.0;
  while (state.step < 7) {
    gradients += trainer.step(state, text.train).gradient_norm / 7;
    first +=
        layer_gradient_norm(trainer.model().layout(), trainer.gradients(), 0) /
        7;
    last +=
        layer_gradient_norm(trainer.model().layout(), trainer.gradients(), 1) /
        7;
    if (state.step != 3 && state.step != 6 && state.step != 7) continue;
    const double nll =
        score_of(trainer.model(), state.weights, text.valid, 1).nll;
    EXPECT_EQ(result.valid_nll(state.step), nll);
    if (nll < least) {
      least = nll;
      best = state.weights;
    }
  }
  EXPECT_EQ(result.seen.size(), 3u);
  EXPECT_EQ(result.valid_nll(5), std::nullopt);
  EXPECT_EQ(result.best_valid_nll, least);
  EXPECT_EQ(result.test_nll, score_of(trainer.model(), best, text.test, 1).nll);
  EXPECT_NEAR(result.gradient_norm, gradients, 1e-12 * gradients);
  EXPECT_NEAR(result.first_layer_norm, first, 1e-12 * first);
  EXPECT_NEAR(result.last_layer_norm, last, 1e-12 * last);
  EXPECT_NE(result.first_layer_norm, result.last_layer_norm);
}

// a rate beyond float: the weights are not finite after the first step
TEST(Learning, SaysWhenAModelDiverges) {
  const TrainingResult result =
      train_model(plan(Mixer::dot, 1e39), corpus(), silent);
  EXPECT_EQ(result.diverged, 2);
  EXPECT_TRUE(result.seen.empty());
  EXPECT_FALSE(train_model(plan(Mixer::dot), corpus(), silent).diverged);
}

// train aaab, valid a·bba: of 4 + 2 counts a has 4 and b has 2
TEST(Learning, UnigramLossIsWorkedByHand) {
  const Corpus text{.vocabulary = Vocabulary::of("ab"),
                    .train = {0, 0, 0, 1},
                    .valid = {0, 1, 1, 0},
                    .test = {0, 1}};
  EXPECT_NEAR(unigram_nll(text),
              -(2 * std::log(2.0 / 6.0) + std::log(4.0 / 6.0)) / 3, 1e-15);
}

Notebook answering(std::vector<Record>& records) {
  return {[](const Figure&) {},
          [&records](const Point&, Record r, const Answer& answer) {
            answer(r);
            records.push_back(r);
            return r.lower;
          },
          [](const Point&, const Record&, const GrowthFit&) {}, silent};
}

TEST(TrainedModels, AnswersForEachModelWhateverTheThreads) {
  const Corpus text = corpus();
  const std::vector<TrainingPlan> plans = {plan(Mixer::dot),
                                           plan(Mixer::lstm, 1e39)};
  for (const bool full : {false, true})
    for (const int threads : {1, 2}) {
      std::vector<Record> records;
      const Notebook book = answering(records);
      TrainedModels models(plans, text, {.full = full, .threads = threads},
                           book);
      for (const std::size_t of : {0, 1})
        models.ask(
            of, 1.0,
            models.question(of, Quantity::loss, "loss", Scope::test_text),
            [](Record& r, const TrainingResult& l) { r.value = l.test_nll; });
      ASSERT_EQ(records.size(), 2u);
      EXPECT_EQ(records[0].value, train_model(plans[0], text, silent).test_nll);
      EXPECT_TRUE(records[0].converged);
      EXPECT_EQ(records[0].kind, "dot");
      EXPECT_EQ(records[1].value, std::nullopt);
      EXPECT_FALSE(records[1].converged);
      EXPECT_TRUE(records[1].details.contains("diverged_at_step"));
    }
}

std::vector<Record> records_of(void (*experiment)(const ExperimentOptions&,
                                                  const Notebook&)) {
  std::vector<Record> records;
  experiment({.threads = 1,
              .text = generated_text(2000),
              .text_name = "text",
              .steps = 2},
             answering(records));
  return records;
}

TEST(KimCharlm, HasACurveAndAnEndForEachModelAndDepth) {
  std::map<std::string, int> curves, ends;
  for (const Record& r : records_of(kim_charlm)) {
    EXPECT_TRUE(r.value) << r.kind;
    EXPECT_FALSE(r.lower || r.upper);
    ++(r.scope == Scope::test_text ? ends : curves)[r.kind];
  }
  for (const char* model :
       {"lstm", "dot", "l2-untied", "l2", "contractive-l2"}) {
    EXPECT_EQ(ends[model], 4) << model;
    EXPECT_EQ(curves[model], 4 * 2) << model;
  }
}

// Two steps teach nothing: all are above the unigram loss, and it is said.
TEST(KimStability, SaysWhoHasNotLearnt) {
  int models = 0, gradients = 0, unigram = 0;
  for (const Record& r : records_of(kim_stability)) {
    ASSERT_TRUE(r.value) << r.kind;
    EXPECT_GT(*r.value, 0.0);
    if (r.kind == "unigram") {
      ++unigram;
      continue;
    }
    EXPECT_FALSE(r.converged) << r.kind;
    ++(r.layer ? gradients : models);
  }
  EXPECT_EQ(models, 4 * 5);
  EXPECT_EQ(gradients, 2 * 4 * 5);
  EXPECT_EQ(unigram, 5);
}

TEST(KimCharlm, RefusesATextThatIsTooShort) {
  EXPECT_THROW(kim_charlm({.text = "too short", .text_name = "t"}, {}),
               InputError);
}

}  // namespace learning_test
}  // namespace lipscope
