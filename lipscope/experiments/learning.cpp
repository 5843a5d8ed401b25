#include "lipscope/experiments/learning.h"

#include <cmath>
#include <mutex>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/experiments/generated_text.h"

namespace lipscope {

std::optional<double> Learnt::valid_nll(Index step) const {
  for (const Evaluation& e : seen)
    if (e.step == step) return e.valid_nll;
  return std::nullopt;
}

Learnt learn(const Lesson& lesson, const Corpus& corpus,
             const std::function<void(const std::string& doing)>& tell) {
  Trainer trainer(lesson.model, lesson.training);
  const int threads = lesson.training.threads;
  TrainingState state = trainer.initial();
  VectorOf<float> best;
  Learnt learnt;
  learnt.weights = state.weights.size();
  while (state.step < lesson.steps) {
    StepReport report;
    try {
      report = trainer.step(state, corpus.train);
    } catch (const RunError&) {  // not finite: the answer to the question
      learnt.diverged = state.step + 1;
      return learnt;
    }
    tell(fmt::format("{}, {} layers, step {}/{}, loss {:.3f}",
                     name_of(lesson.model.mixer), lesson.model.layers,
                     state.step, lesson.steps, report.nll));
    const auto layer_norm = [&](Index layer) {
      return layer_gradient_norm(trainer.model().layout(), trainer.gradients(),
                                 layer);
    };
    const double share = 1.0 / static_cast<double>(lesson.steps);
    learnt.gradient_norm += share * report.gradient_norm;
    learnt.first_layer_norm += share * layer_norm(0);
    learnt.last_layer_norm += share * layer_norm(lesson.model.layers - 1);
    if (state.step % lesson.eval_every != 0 && state.step != lesson.steps)
      continue;
    const double nll =
        mean_nll(trainer.model(), state.weights, corpus.valid, threads);
    if (!std::isfinite(nll)) {
      learnt.diverged = state.step;
      return learnt;
    }
    if (learnt.seen.empty() || nll < learnt.best_valid_nll) {
      best = state.weights;
      learnt.best_valid_nll = nll;
      learnt.best_step = state.step;
    }
    learnt.seen.push_back({state.step, nll});
  }
  learnt.test_nll = mean_nll(trainer.model(), best, corpus.test, threads);
  return learnt;
}

std::vector<Lesson> lessons_of(Lesson lesson, std::span<const Mixer> mixers,
                               Index depth, const Corpus& corpus,
                               const ExperimentOptions& o) {
  lesson.model.layers = depth;
  lesson.model.characters = corpus.vocabulary.size();
  lesson.training.seed = o.seed;
  lesson.training.threads = o.threads;
  std::vector<Lesson> lessons;
  for (const Mixer mixer : mixers) {
    lesson.model.mixer = mixer;
    lessons.push_back(lesson);
  }
  return lessons;
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
  // as in mean_nll, the first character is not predicted
  for (std::size_t i = 1; i < corpus.valid.size(); ++i)
    sum -= std::log(counts[corpus.valid[i]] / all);
  return sum / static_cast<double>(corpus.valid.size() - 1);
}

TrainedModels::TrainedModels(std::vector<Lesson> lessons, const Corpus& corpus,
                             const ExperimentOptions& o,
                             const Notebook& notebook)
    : lessons_(std::move(lessons)),
      corpus_(corpus),
      text_name_(o.text.empty() ? "generated text" : o.text_name),
      one_by_one_(o.full),
      threads_(o.threads),
      notebook_(notebook),
      learnt_(lessons_.size()) {}

Record TrainedModels::question(std::size_t of, Quantity quantity,
                               const std::string& value_of, Scope scope) const {
  const LanguageModelConfig& model = lessons_[of].model;
  const TrainingOptions& training = lessons_[of].training;
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
                  {"steps", static_cast<double>(lessons_[of].steps)},
                  {"learning_rate", training.schedule.rate}};
  r.quantity = quantity;
  r.value_of = value_of;
  return r;
}

void TrainedModels::ask(
    std::size_t of, double x, const Record& question,
    const std::function<void(Record& record, const Learnt& learnt)>& answer) {
  const std::string series = name_of(lessons_[of].model.mixer);
  notebook_.ask({series, x}, question, [&](Record& r) {
    const Learnt& found = learnt(of);
    r.converged = !found.diverged;
    if (found.diverged)
      r.details["diverged_at_step"] = static_cast<double>(*found.diverged);
    else
      answer(r, found);
  });
}

const Learnt& TrainedModels::learnt(std::size_t of) {
  std::mutex telling;
  const auto tell = [&](const std::string& doing) {
    const std::lock_guard one_at_a_time(telling);
    notebook_.tell(doing);
  };
  if (!learnt_[of] && one_by_one_)
    learnt_[of] = learn(lessons_[of], corpus_, tell);
  if (!learnt_[of])
    parallel_for(static_cast<Index>(lessons_.size()), threads_, [&](Index i) {
      learnt_[i] = learn(lessons_[i], corpus_, tell);
    });
  return *learnt_[of];
}

}  // namespace lipscope
