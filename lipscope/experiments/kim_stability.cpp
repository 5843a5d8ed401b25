#include "lipscope/experiments/learning.h"

namespace lipscope {
namespace {

const Schedule fixed_rate{
    .rate = 1e-3, .warmup = 0, .after = Schedule::After::fixed};

const TrainingSweep small_stability{
    .plan = {.model = {.width = 64, .heads = 4, .context = 32, .hidden = 256},
             .training = {.batch = 16, .schedule = fixed_rate, .clip = 0.0},
             .steps = 150},
    .depths = {2, 6, 10, 14, 18},
    .generated = 200'000};
const TrainingSweep large_stability{
    .plan =
        {.model = {.width = 512, .heads = 8, .context = 256, .hidden = 2048},
         .training = {.batch = 64, .schedule = fixed_rate, .clip = 0.0},
         .steps = 5000},
    .depths = {2, 4, 6, 8, 10, 12, 14, 16, 18},
    .generated = 2'000'000};

constexpr Mixer stability_mixers[] = {Mixer::dot, Mixer::l2_untied, Mixer::l2,
                                      Mixer::contractive_l2};

// nats below the unigram loss, or a model has not learnt
constexpr double learnt_by = 0.1;

Figure against_depth(const TrainingPlan& plan) {
  return {.name = "kim-stability",
          .title = "Deep models at a fixed learning rate, without warm-up",
          .explanation = fmt::format(
              "The loss of the validation text after {} steps of AdamW at {} "
              "from the first step on, gradients not clipped; blocks are "
              "residual attention, LayerNorm, residual MLP, LayerNorm. "
              "'unigram' is the loss of who knows only how frequent each "
              "character is. A model that is not {} nats below that has not "
              "learnt, and has the status not-converged; one whose loss or "
              "gradient was not finite has no value. One seed.",
              plan.steps, plan.training.schedule.rate, learnt_by),
          .x_name = "layers",
          .y_name = "validation loss, nats a character"};
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
  const double unigram = unigram_nll(corpus);
  for (const Index depth : sweep.depths) {
    const auto x = static_cast<double>(depth);
    const auto plans = plans_of(plan, stability_mixers, depth, corpus, o);
    TrainedModels models(plans, corpus, o, book);
    const auto has_learnt = [&](const TrainingResult& result) {
      return result.seen.back().valid_nll < unigram - learnt_by;
    };
    for (std::size_t of = 0; of < plans.size(); ++of) {
      book.open(against_depth(plan));
      const Record loss =
          models.question(of, Quantity::loss, "loss in nats a character",
                          Scope::validation_text);
      models.ask(of, x, loss, [&](Record& r, const TrainingResult& result) {
        r.value = result.seen.back().valid_nll;
        r.converged = has_learnt(result);
        r.details = {{"unigram", unigram},
                     {"gradient_norm", result.gradient_norm}};
      });
      Record norm =
          models.question(of, Quantity::gradient_norm,
                          "2-norm of the gradient of a layer", Scope::batches);
      for (const bool first : {true, false}) {
        book.open(gradients(first));
        norm.layer = first ? 0 : depth - 1;
        models.ask(of, x, norm, [&](Record& r, const TrainingResult& result) {
          r.value = first ? result.first_layer_norm : result.last_layer_norm;
          r.converged = has_learnt(result);
        });
      }
    }
    book.open(against_depth(plan));
    Record frequencies = attention_question("frequencies of characters");
    frequencies.map = "model";
    frequencies.kind = "unigram";
    frequencies.norm.reset();
    frequencies.n = 1;
    frequencies.d = corpus.vocabulary.size();
    frequencies.scope = Scope::validation_text;
    frequencies.quantity = Quantity::loss;
    frequencies.value_of = "loss in nats a character";
    book.ask({"unigram", x}, frequencies,
             [&](Record& r) { r.value = unigram; });
  }
}

}  // namespace lipscope
