#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/experiments/experiment.h"
#include "lipscope/train/trainer.h"

/// What experiments do whose models learn.
namespace lipscope {

/// A model, and how it is trained.
struct TrainingPlan {
  LanguageModelConfig model;
  TrainingOptions training;
  Index steps = 0;
  Index eval_every = 0;  ///< steps; the last is always evaluated
};

/// A plan, the depths at which it is carried out, and how many characters of a
/// generated text it takes where there is no other.
struct TrainingSweep {
  TrainingPlan plan;
  std::vector<Index> depths;
  Index generated = 0;
};

/// The plan for each of these, of that depth, with the characters of the
/// corpus and the seed and threads of the options.
std::vector<TrainingPlan> plans_of(TrainingPlan plan,
                                   std::span<const Mixer> mixers, Index depth,
                                   const Corpus& corpus,
                                   const ExperimentOptions& options);

/// What came of a plan. Losses are in nats for each character.
struct TrainingResult {
  struct Evaluation {
    Index step = 0;
    double valid_nll = 0.0;
  };
  std::vector<Evaluation> seen;
  Index best_step = 0;
  double best_valid_nll = 0.0;
  double test_nll = 0.0;  ///< of the weights that were best
  Index weights = 0;      ///< how many it has
  /// Means over all steps of gradient norms before clipping: of all weights,
  /// of the first and of the last layer.
  double gradient_norm = 0.0, first_layer_norm = 0.0, last_layer_norm = 0.0;
  /// The step at which a loss or a gradient was not finite. Nothing but `seen`
  /// and `weights` is known then.
  std::optional<Index> diverged;

  /// After that step; nothing if it was not evaluated.
  std::optional<double> valid_nll(Index step) const;
};

TrainingResult train_model(
    const TrainingPlan& plan, const Corpus& corpus,
    const std::function<void(const std::string& doing)>& tell);

/// The text of the options, or so many characters of a generated one, in
/// pieces.
Corpus corpus_for(const ExperimentOptions& options, Index generated,
                  Index context);

/// The validation loss of who knows only how frequent each character is in the
/// training text, (count + 1)/(characters + vocabulary).
double unigram_nll(const Corpus& corpus);

/// Models that learn one text. They do it when the first record about one of
/// them is wanted: all of them side by side, one on each thread, or, at full
/// size, each when it is wanted, on all threads.
class TrainedModels {
 public:
  /// Borrows corpus and notebook, which must outlive this.
  TrainedModels(std::vector<TrainingPlan> plans, const Corpus& corpus,
                const ExperimentOptions& options, const Notebook& notebook);

  /// What is asked of one model.
  Record question(std::size_t of, Quantity quantity,
                  const std::string& value_of, Scope scope) const;

  /// At x on the curve of the model's mixer. `answer` is called unless the
  /// model diverged: the record then has the step among its details, no value,
  /// and is not converged.
  void ask(std::size_t of, double x, const Record& question,
           const std::function<void(Record& record,
                                    const TrainingResult& result)>& answer);

 private:
  const TrainingResult& result(std::size_t of);

  std::vector<TrainingPlan> plans_;
  const Corpus& corpus_;
  std::string text_name_;
  bool one_by_one_;
  int threads_;
  const Notebook& notebook_;
  std::vector<std::optional<TrainingResult>> results_;
};

}  // namespace lipscope
