#include "lipscope/experiments/learning.h"

#include <cmath>
#include <mutex>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/experiments/generated_text.h"
#include "lipscope/train/next_token.h"

namespace lipscope {

std::optional<double> TrainingResult::valid_nll(Index step) const {
  for (const Evaluation& e : seen)
    if (e.step == step) return e.valid_nll;
  return std::nullopt;
}

TrainingResult train_model(
    const TrainingPlan& plan, const Corpus& corpus,
    const std::function<void(const std::string& doing)>& tell) {
  Trainer trainer(plan.model, plan.training);
  const int threads = plan.training.threads;
  TrainingState state = trainer.initial();
  VectorOf<float> best;
  TrainingResult result;
  result.weights = state.weights.size();
  while (state.step < plan.steps) {
    StepReport report;
    try {
      report = trainer.step(state, corpus.train);
    } catch (const RunError&) {  // not finite: the answer to the question
      result.diverged = state.step + 1;
      return result;
    }
    tell(fmt::format("{}, {} layers, step {}/{}, loss {:.3f}",
                     name_of(plan.model.mixer), plan.model.layers, state.step,
                     plan.steps, report.nll));
    const auto layer_norm = [&](Index layer) {
      return layer_gradient_norm(trainer.model().layout(), trainer.gradients(),
                                 layer);
    };
    const double share = 1.0 / static_cast<double>(plan.steps);
    result.gradient_norm += share * report.gradient_norm;
    result.first_layer_norm += share * layer_norm(0);
    result.last_layer_norm += share * layer_norm(plan.model.layers - 1);
    if (state.step % plan.eval_every != 0 && state.step != plan.steps) continue;
    const double nll =
        score_of(trainer.model(), state.weights, corpus.valid, threads).nll;
    if (!std::isfinite(nll)) {
      result.diverged = state.step;
      return result;
    }
    if (result.seen.empty() || nll < result.best_valid_nll) {
      best = state.weights;
      result.best_valid_nll = nll;
      result.best_step = state.step;
    }
    result.seen.push_back({state.step, nll});
  }
  result.test_nll = score_of(trainer.model(), best, corpus.test, threads).nll;
  return result;
}

std::vector<TrainingPlan> plans_of(TrainingPlan plan,
                                   std::span<const Mixer> mixers, Index depth,
                                   const Corpus& corpus,
                                   const ExperimentOptions& o) {
  plan.model.layers = depth;
  plan.model.characters = corpus.vocabulary.size();
  plan.training.seed = o.seed;
  plan.training.threads = o.threads;
  std::vector<TrainingPlan> plans;
  for (const Mixer mixer : mixers) {
    plan.model.mixer = mixer;
    plans.push_back(plan);
  }
  return plans;
}

Corpus corpus_for(const ExperimentOptions& o, Index generated, Index context) {
  return o.text.empty()
             ? corpus_of(generated_text(generated), context, "generated text")
             : corpus_of(o.text, context, o.text_name);
}

double unigram_nll(const Corpus& corpus) {
  std::vector<double> counts(corpus.vocabulary.size(), 1.0);
  for (const int c : corpus.train) ++counts[c];
  const double all = static_cast<double>(corpus.train.size() + counts.size());
  double sum = 0.0;
  // as in score_of, the first character is not predicted
  for (std::size_t i = 1; i < corpus.valid.size(); ++i)
    sum -= std::log(counts[corpus.valid[i]] / all);
  return sum / static_cast<double>(corpus.valid.size() - 1);
}

TrainedModels::TrainedModels(std::vector<TrainingPlan> plans,
                             const Corpus& corpus, const ExperimentOptions& o,
                             const Notebook& notebook)
    : plans_(std::move(plans)),
      corpus_(corpus),
      text_name_(o.text.empty() ? "generated text" : o.text_name),
      one_by_one_(o.full),
      threads_(o.threads),
      notebook_(notebook),
      results_(plans_.size()) {}

Record TrainedModels::question(std::size_t of, Quantity quantity,
                               const std::string& value_of, Scope scope) const {
  const LanguageModelConfig& model = plans_[of].model;
  const TrainingOptions& training = plans_[of].training;
  Record r = attention_question(
      fmt::format("{} layers, width {}, {} heads, on {}", model.layers,
                  model.width, model.heads, text_name_));
  r.map = "model";
  r.kind = name_of(model.mixer);
  r.mask = name_of(Mask::causal);
  r.norm.reset();
  r.n = model.context;
  r.d = model.width;
  r.scope = scope;
  r.dtype = NumberFormat::f32;
  r.parameters = {{"layers", static_cast<double>(model.layers)},
                  {"batch", static_cast<double>(training.batch)},
                  {"steps", static_cast<double>(plans_[of].steps)},
                  {"learning_rate", training.schedule.rate}};
  r.quantity = quantity;
  r.value_of = value_of;
  return r;
}

void TrainedModels::ask(
    std::size_t of, double x, const Record& question,
    const std::function<void(Record& record, const TrainingResult& result)>&
        answer) {
  const std::string series = name_of(plans_[of].model.mixer);
  notebook_.ask({series, x}, question, [&](Record& r) {
    const TrainingResult& found = result(of);
    r.converged = !found.diverged;
    if (found.diverged)
      r.details["diverged_at_step"] = static_cast<double>(*found.diverged);
    else
      answer(r, found);
  });
}

const TrainingResult& TrainedModels::result(std::size_t of) {
  std::mutex telling;
  const auto tell = [&](const std::string& doing) {
    const std::lock_guard one_at_a_time(telling);
    notebook_.tell(doing);
  };
  if (!results_[of] && one_by_one_)
    results_[of] = train_model(plans_[of], corpus_, tell);
  if (!results_[of])
    parallel_for(static_cast<Index>(plans_.size()), threads_, [&](Index i) {
      results_[i] = train_model(plans_[i], corpus_, tell);
    });
  return *results_[of];
}

}  // namespace lipscope
