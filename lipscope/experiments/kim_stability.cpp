#include "lipscope/experiments/learning.h"
#include "lipscope/experiments/ngram_baselines.h"

namespace lipscope {
namespace {

const Schedule fixed_rate{
    .rate = 1e-3, .warmup = 0, .after = Schedule::After::fixed};

const TrainingSweep small_stability{
    .plan = {.model = {.width = 64, .heads = 4, .context = 32, .hidden = 256},
             .training = {.batch = 16, .schedule = fixed_rate, .clip = 0.0},
             .steps = 150},
    .depths = {2, 6, 10, 14, 18},
    .seeds = 3,
    .generated = 200'000};
const TrainingSweep large_stability{
    .plan =
        {.model = {.width = 256, .heads = 8, .context = 128, .hidden = 1024},
         .training = {.batch = 32, .schedule = fixed_rate, .clip = 0.0},
         .steps = 2000},
    .depths = {2, 6, 10, 14, 18},
    .seeds = 1,
    .generated = 2'000'000};

constexpr Mixer stability_mixers[] = {Mixer::dot, Mixer::l2_untied, Mixer::l2,
                                      Mixer::contractive_l2};

// nats below the unigram loss, or a model has not learnt
constexpr double learnt_by = 0.1;

Figure against_depth(const TrainingPlan& plan) {
  return {.name = "kim-stability",
          .title = "Deep models at a fixed learning rate, without warm-up",
          .explanation = fmt::format(
              "The loss of the whole last tenth after {} steps of AdamW at {} "
              "on nine tenths, from the first step on, gradients not clipped; "
              "blocks are residual attention, LayerNorm, residual MLP, "
              "LayerNorm. '1-grams' is the loss of who knows only how frequent "
              "each character is. A model that is not {} nats below that with "
              "every seed has not learnt, and has the status not-converged; "
              "one whose loss or gradient was not finite has no value. Where "
              "there are several seeds, their mean and in brackets their "
              "range.",
              plan.steps, plan.training.schedule.rate, learnt_by),
          .x_name = "layers",
          .y_name = "loss on the last tenth, nats a character"};
}

Figure stability_predicted() {
  return {.name = "kim-stability, predicted",
          .title = "Characters that deep models predict",
          .explanation =
              "The share of the last tenth whose characters were "
              "the likeliest, same models.",
          .x_name = "layers",
          .y_name = "share predicted"};
}

Figure gradients(bool first) {
  const char* layer = first ? "first" : "last";
  return {.name = fmt::format("kim-stability, {} layer", layer),
          .title = fmt::format(
              "Gradients of the {} layer at a fixed learning rate", layer),
          .explanation = fmt::format(
              "The 2-norm of the gradient of a batch's loss by the weights of "
              "the {} layer, as a mean over the steps of the runs above.",
              layer),
          .x_name = "layers",
          .y_name = "norm of the gradient",
          .log_y = true};
}

}  // namespace

void kim_stability(const ExperimentOptions& o, const Notebook& book) {
  const TrainingSweep& sweep = o.full ? large_stability : small_stability;
  TrainingPlan plan = sweep.plan;
  if (o.steps > 0) plan.steps = o.steps;
  plan.eval_every = plan.steps;
  const Corpus corpus = corpus_for(o, sweep.generated, plan.model.context);
  NGramBaselines counted(corpus);
  const std::string loss_of = "loss in nats a character";
  const std::string share_of = "share of characters that were the likeliest";
  const auto has_learnt = [&](const SeededResults& results) {
    for (const TrainingResult& one : results)
      if (one.last_tenth.nll >= counted.last_tenth_scores()[0].nll - learnt_by)
        return false;
    return true;
  };
  for (const Index depth : sweep.depths) {
    const auto x = static_cast<double>(depth);
    const auto plans = plans_of(plan, stability_mixers, depth, corpus, o);
    TrainedModels models(plans, sweep.seeds, corpus, o, book);
    const auto ask = [&](std::size_t of, const Record& question,
                         double (*value)(const TrainingResult&)) {
      models.ask(of, x, question, [&](Record& r, const SeededResults& results) {
        set_mean(r, results, value);
        r.converged = has_learnt(results);
      });
    };
    for (std::size_t of = 0; of < plans.size(); ++of) {
      book.open(against_depth(plan));
      ask(of, models.question(of, Quantity::loss, loss_of, Scope::test_text),
          [](const TrainingResult& one) { return one.last_tenth.nll; });
      book.open(stability_predicted());
      ask(of, models.question(of, Quantity::share, share_of, Scope::test_text),
          [](const TrainingResult& one) { return one.last_tenth.accuracy; });
      Record norm =
          models.question(of, Quantity::gradient_norm,
                          "2-norm of the gradient of a layer", Scope::batches);
      book.open(gradients(true));
      norm.layer = 0;
      ask(of, norm,
          [](const TrainingResult& one) { return one.first_layer_norm; });
      book.open(gradients(false));
      norm.layer = depth - 1;
      ask(of, norm,
          [](const TrainingResult& one) { return one.last_layer_norm; });
    }
    for (const Index n : {1, 2, 5}) {
      const Point at{fmt::format("{}-grams", n), x};
      book.open(against_depth(plan));
      book.ask(
          at, ngram_question(n, corpus, Quantity::loss, loss_of),
          [&](Record& r) { r.value = counted.last_tenth_scores()[n - 1].nll; });
      book.open(stability_predicted());
      book.ask(at, ngram_question(n, corpus, Quantity::share, share_of),
               [&](Record& r) {
                 r.value = counted.last_tenth_scores()[n - 1].accuracy;
               });
    }
  }
}

}  // namespace lipscope
