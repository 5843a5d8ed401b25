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
  double gradients = 0.0, first = 0.0, last = 0.0;
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
  }
  EXPECT_EQ(result.seen.size(), 3u);
  EXPECT_EQ(result.valid_nll(5), std::nullopt);
  EXPECT_EQ(result.last_weights, state.weights);
  const TextScore unseen =
      score_of(trainer.model(), state.weights, last_tenth(text), 1);
  EXPECT_EQ(result.last_tenth.nll, unseen.nll);
  EXPECT_EQ(result.last_tenth.accuracy, unseen.accuracy);
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

TEST(Learning, MeansAndRangesAreThoseOfTheSeeds) {
  SeededResults results(3);
  results[0].last_tenth.nll = 2.0;
  results[1].last_tenth.nll = 1.0;
  results[2].last_tenth.nll = 1.5;
  const auto nll = [](const TrainingResult& r) { return r.last_tenth.nll; };
  Record r;
  set_mean(r, results, nll);
  EXPECT_DOUBLE_EQ(r.value.value(), 1.5);
  EXPECT_EQ(r.details["least"], 1.0);
  EXPECT_EQ(r.details["most"], 2.0);
  EXPECT_EQ(r.details["seeds"], 3.0);
  Record alone;
  set_mean(alone, {results[0]}, nll);
  EXPECT_EQ(alone.value, 2.0);
  EXPECT_FALSE(alone.details.contains("least"));
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
      TrainedModels models(plans, 2, text, {.full = full, .threads = threads},
                           book);
      for (const std::size_t of : {0, 1})
        models.ask(
            of, 1.0,
            models.question(of, Quantity::loss, "loss", Scope::test_text),
            [](Record& r, const SeededResults& found) {
              set_mean(r, found, [](const TrainingResult& l) {
                return l.last_tenth.nll;
              });
            });
      ASSERT_EQ(records.size(), 2u);
      // two seeds, that of the plan and the next
      TrainingPlan second = plans[0];
      ++second.training.seed;
      const double nll[] = {train_model(plans[0], text, silent).last_tenth.nll,
                            train_model(second, text, silent).last_tenth.nll};
      EXPECT_NE(nll[0], nll[1]);
      EXPECT_DOUBLE_EQ(records[0].value.value(), (nll[0] + nll[1]) / 2);
      EXPECT_EQ(records[0].details["least"], std::min(nll[0], nll[1]));
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
  std::map<std::string, int> curves, losses, shares;
  for (const Record& r : records_of(kim_charlm)) {
    EXPECT_TRUE(r.value) << r.kind;
    EXPECT_FALSE(r.lower || r.upper);
    const std::string model =
        r.kind + (r.parameters.contains("quiet_gain") ? " by coordinate" : "");
    if (r.scope == Scope::validation_text)
      ++curves[model];
    else
      ++(r.quantity == Quantity::share ? shares : losses)[model];
    if (r.kind == "dot") {
      EXPECT_EQ(r.details["seeds"], 3.0);
    }
  }
  for (const char* model : {"lstm", "dot", "l2-untied", "l2", "contractive-l2",
                            "contractive-l2 by coordinate"}) {
    EXPECT_EQ(losses[model], 4) << model;
    EXPECT_EQ(shares[model], 4) << model;
    EXPECT_EQ(curves[model], 4 * 2) << model;
  }
  for (const char* counted : {"2-grams", "5-grams", "6-grams"}) {
    EXPECT_EQ(losses[counted], 4) << counted;
    EXPECT_EQ(shares[counted], 4) << counted;
  }
}

// Two steps teach nothing: all are above the loss of 1-grams, and it is said.
TEST(KimStability, SaysWhoHasNotLearnt) {
  int models = 0, gradients = 0, counted = 0;
  for (const Record& r : records_of(kim_stability)) {
    ASSERT_TRUE(r.value) << r.kind;
    EXPECT_GT(*r.value, 0.0);
    if (r.kind.ends_with("-grams")) {
      ++counted;
      continue;
    }
    EXPECT_FALSE(r.converged) << r.kind;
    ++(r.layer ? gradients : models);
  }
  EXPECT_EQ(models, 2 * 4 * 5);  // loss and share
  EXPECT_EQ(gradients, 2 * 4 * 5);
  EXPECT_EQ(counted, 2 * 3 * 5);
}

TEST(KimCharlm, RefusesATextThatIsTooShort) {
  EXPECT_THROW(kim_charlm({.text = "too short", .text_name = "t"}, {}),
               InputError);
}

}  // namespace learning_test
}  // namespace lipscope
