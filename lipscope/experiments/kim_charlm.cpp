#include <algorithm>

#include "lipscope/experiments/learning.h"
#include "lipscope/experiments/ngram_baselines.h"

namespace lipscope {
namespace {

const TrainingSweep small_charlm{
    .plan = {.model = {.width = 64, .heads = 4, .context = 64, .hidden = 256},
             .training = {.batch = 16,
                          .schedule = {.rate = 3e-3, .warmup = 100}},
             .steps = 800},
    .depths = {1, 2, 3, 4},
    .seeds = 3,
    .generated = 400'000};
const TrainingSweep large_charlm{
    .plan =
        {.model = {.width = 256, .heads = 8, .context = 128, .hidden = 1024},
         .training = {.batch = 32, .schedule = {.rate = 1e-3, .warmup = 200}},
         .steps = 3000},
    .depths = {1, 2, 4, 6, 8},
    .seeds = 1,
    .generated = 2'000'000};

// of the validation text, on the way
constexpr Index evaluations = 8;

constexpr Mixer charlm_mixers[] = {Mixer::lstm, Mixer::dot, Mixer::l2_untied,
                                   Mixer::l2, Mixer::contractive_l2};

// Contractive attention that reads its neighbours: Kim21's, with a divisor for
// each coordinate of the output, and begun where it is heard.
TrainingPlan by_coordinate(TrainingPlan plan) {
  plan.model.mixer = Mixer::contractive_l2;
  plan.model.division = Division::coordinate;
  plan.model.positions = Positions::relative;
  plan.model.quiet_gain = 8.0;
  return plan;
}

constexpr const char* loss_of = "loss in nats a character";
constexpr const char* share_of = "share of characters that were the likeliest";

Figure against_depth() {
  return {.name = "kim-charlm",
          .title = "Models of characters against their depth",
          .explanation =
              "Each model learns nine tenths of the same text by the same "
              "batches: AdamW, linear warm-up, then 1/sqrt(step); blocks are "
              "residual attention, LayerNorm, residual MLP, LayerNorm. The "
              "loss of the whole last tenth with the last step's weights: the "
              "mean of -log p(character | those before it in its window), in "
              "nats. 'contractive-l2 by coordinate' has a divisor for each "
              "coordinate, relative positions and a quiet start. Where a model "
              "was trained with several seeds, their mean and in brackets "
              "their range. n-grams are counted in the same nine tenths.",
          .x_name = "layers",
          .y_name = "loss on the last tenth, nats a character"};
}

Figure charlm_predicted() {
  return {.name = "kim-charlm, predicted",
          .title = "Characters that these models predict",
          .explanation =
              "The share of the last tenth whose characters were "
              "the likeliest, same models.",
          .x_name = "layers",
          .y_name = "share predicted"};
}

Figure against_steps(Index depth) {
  return {.name = fmt::format("kim-charlm, {} layers", depth),
          .title = fmt::format("Models of characters with {} layer{} as they "
                               "learn",
                               depth, depth == 1 ? "" : "s"),
          .explanation =
              "The loss of the validation text, which is the first half of "
              "the last tenth.",
          .x_name = "step",
          .y_name = "validation loss, nats a character"};
}

double nll_of(const TrainingResult& r) { return r.last_tenth.nll; }
double accuracy_of(const TrainingResult& r) { return r.last_tenth.accuracy; }

}  // namespace

void kim_charlm(const ExperimentOptions& o, const Notebook& book) {
  const TrainingSweep& sweep = o.full ? large_charlm : small_charlm;
  TrainingPlan plan = sweep.plan;
  if (o.steps > 0) plan.steps = o.steps;
  plan.eval_every = std::max<Index>(1, plan.steps / evaluations);
  const Corpus corpus = corpus_for(o, sweep.generated, plan.model.context);
  NGramBaselines counted(corpus);
  book.open(against_depth());
  book.open(charlm_predicted());
  for (const Index depth : sweep.depths) {
    const auto x = static_cast<double>(depth);
    auto plans = plans_of(plan, charlm_mixers, depth, corpus, o);
    plans.push_back(by_coordinate(plans.back()));
    TrainedModels models(plans, sweep.seeds, corpus, o, book);
    // all that is known of a model is written down before the next one
    for (std::size_t of = 0; of < plans.size(); ++of) {
      book.open(against_steps(depth));
      const Record curve =
          models.question(of, Quantity::loss, loss_of, Scope::validation_text);
      for (Index step = plan.eval_every; step <= plan.steps;
           step += plan.eval_every)
        models.ask(of, static_cast<double>(step), curve,
                   [&](Record& r, const SeededResults& results) {
                     set_mean(r, results, [&](const TrainingResult& one) {
                       return one.valid_nll(step).value();
                     });
                   });
      book.open(against_depth());
      models.ask(of, x,
                 models.question(of, Quantity::loss, loss_of, Scope::test_text),
                 [](Record& r, const SeededResults& results) {
                   set_mean(r, results, nll_of);
                   r.details["weights"] =
                       static_cast<double>(results.front().last_weights.size());
                 });
      book.open(charlm_predicted());
      models.ask(
          of, x,
          models.question(of, Quantity::share, share_of, Scope::test_text),
          [](Record& r, const SeededResults& results) {
            set_mean(r, results, accuracy_of);
          });
    }
    for (const Index n : NGramBaselines::shown) {
      const Point at{fmt::format("{}-grams", n), x};
      book.open(against_depth());
      book.ask(
          at, ngram_question(n, corpus, Quantity::loss, loss_of),
          [&](Record& r) { r.value = counted.last_tenth_scores()[n - 1].nll; });
      book.open(charlm_predicted());
      book.ask(at, ngram_question(n, corpus, Quantity::share, share_of),
               [&](Record& r) {
                 r.value = counted.last_tenth_scores()[n - 1].accuracy;
               });
    }
  }
}

}  // namespace lipscope
