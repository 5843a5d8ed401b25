#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/experiments/experiment.h"
#include "lipscope/train/text_score.h"
#include "lipscope/train/trainer.h"

/// What experiments do whose models learn: nine tenths of a text are learnt,
/// and the last step's weights are judged by the last tenth, all of it.
namespace lipscope {

/// A model, and how it is trained.
struct TrainingPlan {
  LanguageModelConfig model;
  TrainingOptions training;
  Index steps = 0;
  Index eval_every = 0;  ///< steps; the last is always evaluated

  /// The name of its curve: the mixer, and how it is divided if not by layer.
  std::string series() const;
};

/// A plan, the depths at which it is carried out, how many seeds each model is
/// trained with, and how many characters of a generated text it takes where
/// there is no other.
struct TrainingSweep {
  TrainingPlan plan;
  std::vector<Index> depths;
  Index seeds = 1;
  Index generated = 0;
};

/// The plan for each of these, of that depth, with the characters of the
/// corpus and the seed and threads of the options.
std::vector<TrainingPlan> plans_of(TrainingPlan plan,
                                   std::span<const Mixer> mixers, Index depth,
                                   const Corpus& corpus,
                                   const ExperimentOptions& options);

/// What came of a plan.
struct TrainingResult {
  struct Evaluation {
    Index step = 0;
    double valid_nll = 0.0;
  };
  std::vector<Evaluation> seen;
  /// Of the last step's weights.
  TextScore last_tenth;
  VectorOf<float> last_weights;
  /// Means over all steps of gradient norms before clipping: of all weights,
  /// of the first and of the last layer.
  double gradient_norm = 0.0, first_layer_norm = 0.0, last_layer_norm = 0.0;
  /// The step at which a loss or a gradient was not finite. Nothing but `seen`
  /// and `last_weights` is known then.
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

/// Its name.
std::string text_name(const ExperimentOptions& options);

/// What was learnt with several seeds; never empty.
using SeededResults = std::vector<TrainingResult>;

/// The mean over the seeds as the record's value, with the least, the most and
/// the number of seeds among its details.
void set_mean(Record& record, const SeededResults& results,
              const std::function<double(const TrainingResult&)>& value);

/// Models that learn one text, each with several seeds: that of its plan and
/// those after it. They do it when the first record about one of them is
/// wanted: all of them side by side, one on each thread, or, at full size, each
/// when it is wanted, on all threads.
class TrainedModels {
 public:
  /// Borrows corpus and notebook, which must outlive this.
  TrainedModels(std::vector<TrainingPlan> plans, Index seeds,
                const Corpus& corpus, const ExperimentOptions& options,
                const Notebook& notebook);

  /// What is asked of one model.
  Record question(std::size_t of, Quantity quantity,
                  const std::string& value_of, Scope scope) const;

  /// At x on the curve of the model. `answer` is called unless a seed
  /// diverged: the record then has the step among its details, no value, and
  /// is not converged.
  void ask(std::size_t of, double x, const Record& question,
           const std::function<void(Record& record,
                                    const SeededResults& results)>& answer);

 private:
  const SeededResults& results(std::size_t of);

  std::vector<TrainingPlan> plans_;
  Index seeds_;
  const Corpus& corpus_;
  std::string text_name_;
  bool one_by_one_;
  int threads_;
  const Notebook& notebook_;
  std::vector<SeededResults> results_;  ///< empty: not trained yet
};

}  // namespace lipscope
