#include "lipscope/experiments/learning.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/experiments/generated_text.h"
#include "lipscope/train/next_token.h"

namespace lipscope {

std::string TrainingPlan::series() const {
  const std::string mixer = name_of(model.mixer);
  if (model.division == Division::layer) return mixer;
  return fmt::format("{} by {}", mixer, name_of(model.division));
}

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
  TrainingResult result;
  const auto end = [&](std::optional<Index> diverged) {
    result.diverged = diverged;
    result.last_weights = std::move(state.weights);
    return result;
  };
  while (state.step < plan.steps) {
    StepReport report;
    try {
      report = trainer.step(state, corpus.train);
    } catch (const RunError&) {  // not finite: the answer to the question
      return end(state.step + 1);
    }
    tell(fmt::format("{}, {} layers, step {}/{}, loss {:.3f}", plan.series(),
                     plan.model.layers, state.step, plan.steps, report.nll));
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
    if (!std::isfinite(nll)) return end(state.step);
    result.seen.push_back({state.step, nll});
  }
  result.last_tenth =
      score_of(trainer.model(), state.weights, last_tenth(corpus), threads);
  return end({});
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

std::string text_name(const ExperimentOptions& o) {
  return o.text.empty() ? "generated text" : o.text_name;
}

Corpus corpus_for(const ExperimentOptions& o, Index generated, Index context) {
  return corpus_of(o.text.empty() ? generated_text(generated) : o.text, context,
                   text_name(o));
}

void set_mean(Record& r, const SeededResults& results,
              const std::function<double(const TrainingResult&)>& value) {
  std::vector<double> values;
  double sum = 0.0;
  for (const TrainingResult& one : results) {
    values.push_back(value(one));
    sum += values.back();
  }
  r.value = sum / static_cast<double>(values.size());
  r.details["seeds"] = static_cast<double>(values.size());
  if (values.size() < 2) return;
  r.details["least"] = *std::min_element(values.begin(), values.end());
  r.details["most"] = *std::max_element(values.begin(), values.end());
}

TrainedModels::TrainedModels(std::vector<TrainingPlan> plans, Index seeds,
                             const Corpus& corpus, const ExperimentOptions& o,
                             const Notebook& notebook)
    : plans_(std::move(plans)),
      seeds_(seeds),
      corpus_(corpus),
      text_name_(text_name(o)),
      one_by_one_(o.full),
      threads_(o.threads),
      notebook_(notebook),
      results_(plans_.size()) {
  require(seeds >= 1, "trained models: {} seeds", seeds);
}

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
                  {"learning_rate", training.schedule.rate},
                  {"seeds", static_cast<double>(seeds_)}};
  if (model.quiet_gain) r.parameters["quiet_gain"] = *model.quiet_gain;
  r.quantity = quantity;
  r.value_of = value_of;
  return r;
}

void TrainedModels::ask(
    std::size_t of, double x, const Record& question,
    const std::function<void(Record& record, const SeededResults& results)>&
        answer) {
  notebook_.ask({plans_[of].series(), x}, question, [&](Record& r) {
    const SeededResults& found = results(of);
    for (const TrainingResult& one : found)
      if (one.diverged) {
        r.converged = false;
        r.details["diverged_at_step"] = static_cast<double>(*one.diverged);
        return;
      }
    answer(r, found);
  });
}

const SeededResults& TrainedModels::results(std::size_t of) {
  if (!results_[of].empty()) return results_[of];
  std::mutex telling;
  const auto tell = [&](const std::string& doing) {
    const std::lock_guard one_at_a_time(telling);
    notebook_.tell(doing);
  };
  const auto trained = [&](std::size_t plan, Index seed) {
    TrainingPlan one = plans_[plan];
    one.training.seed += static_cast<std::uint64_t>(seed);
    return train_model(one, corpus_, tell);
  };
  if (one_by_one_) {
    for (Index seed = 0; seed < seeds_; ++seed)
      results_[of].push_back(trained(of, seed));
    return results_[of];
  }
  for (SeededResults& all : results_) all.resize(seeds_);
  parallel_for(static_cast<Index>(plans_.size()) * seeds_, threads_,
               [&](Index i) {
                 results_[i / seeds_][i % seeds_] =
                     trained(static_cast<std::size_t>(i / seeds_), i % seeds_);
               });
  return results_[of];
}

}  // namespace lipscope
