#include <algorithm>

#include "lipscope/experiments/learning.h"

namespace lipscope {
namespace {

const TrainingSweep small_charlm{
    .plan = {.model = {.width = 64, .heads = 4, .context = 64, .hidden = 256},
             .training = {.batch = 16,
                          .schedule = {.rate = 3e-3, .warmup = 100}},
             .steps = 800},
    .depths = {1, 2, 3, 4},
    .generated = 400'000};
const TrainingSweep large_charlm{
    .plan =
        {.model = {.width = 512, .heads = 8, .context = 256, .hidden = 2048},
         .training = {.batch = 64, .schedule = {.rate = 1e-3, .warmup = 1000}},
         .steps = 20'000},
    .depths = {1, 2, 3, 4, 5, 6, 8, 10},
    .generated = 2'000'000};

// of the validation text, on the way
constexpr Index evaluations = 8;

constexpr Mixer charlm_mixers[] = {Mixer::lstm, Mixer::dot, Mixer::l2_untied,
                                   Mixer::l2, Mixer::contractive_l2};

Figure against_depth() {
  return {.name = "kim-charlm",
          .title = "Models of characters against their depth",
          .explanation =
              "Each model learns the same text by the same batches: AdamW, "
              "linear warm-up, then 1/sqrt(step); blocks are residual "
              "attention, LayerNorm, residual MLP, LayerNorm. The loss of the "
              "test text with the weights that were best on the validation "
              "text: the mean of -log p(character | those before it in its "
              "window), in nats. One seed.",
          .x_name = "layers",
          .y_name = "test loss, nats a character"};
}

Figure against_steps(Index depth) {
  return {.name = fmt::format("kim-charlm, {} layers", depth),
          .title = fmt::format("Models of characters with {} layer{} as they "
                               "learn",
                               depth, depth == 1 ? "" : "s"),
          .explanation = "The loss of the validation text.",
          .x_name = "step",
          .y_name = "validation loss, nats a character"};
}

}  // namespace

void kim_charlm(const ExperimentOptions& o, const Notebook& book) {
  const TrainingSweep& sweep = o.full ? large_charlm : small_charlm;
  TrainingPlan plan = sweep.plan;
  if (o.steps > 0) plan.steps = o.steps;
  plan.eval_every = std::max<Index>(1, plan.steps / evaluations);
  const Corpus corpus = corpus_for(o, sweep.generated, plan.model.context);
  book.open(against_depth());
  for (const Index depth : sweep.depths) {
    const auto plans = plans_of(plan, charlm_mixers, depth, corpus, o);
    TrainedModels models(plans, corpus, o, book);
    // all that is known of a model is written down before the next one
    for (std::size_t of = 0; of < plans.size(); ++of) {
      book.open(against_steps(depth));
      const Record curve =
          models.question(of, Quantity::loss, "loss in nats a character",
                          Scope::validation_text);
      for (Index step = plan.eval_every; step <= plan.steps;
           step += plan.eval_every) {
        models.ask(of, static_cast<double>(step), curve,
                   [&](Record& r, const TrainingResult& result) {
                     r.value = result.valid_nll(step);
                   });
      }
      book.open(against_depth());
      const Record end = models.question(
          of, Quantity::loss, "loss in nats a character", Scope::test_text);
      models.ask(of, static_cast<double>(depth), end,
                 [](Record& r, const TrainingResult& result) {
                   r.value = result.test_nll;
                   r.details = {
                       {"best_valid_nll", result.best_valid_nll},
                       {"best_step", static_cast<double>(result.best_step)},
                       {"weights", static_cast<double>(result.weights)}};
                 });
    }
  }
}

}  // namespace lipscope
