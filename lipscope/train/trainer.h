#pragma once

#include "lipscope/train/adamw.h"
#include "lipscope/train/corpus.h"
#include "lipscope/train/language_model.h"
#include "lipscope/train/training_options.h"

namespace lipscope {

/// All that a step depends on besides the text and the options: random numbers
/// are drawn from the seed and the number of the step, so that nothing else has
/// to be remembered.
struct TrainingState {
  Index step = 0;  ///< steps done
  VectorOf<float> weights;
  AdamMoments moments;
};

class Trainer {
 public:
  Trainer(const LanguageModelConfig& config, TrainingOptions options);

  /// Weights as they begin, by the seed.
  TrainingState initial() const;

  /// One step on a random batch of the text. RunError if the loss or the
  /// gradient is not finite: the state is then as it was.
  StepReport step(TrainingState& state, std::span<const int> text);

  /// The same on this batch.
  StepReport step(TrainingState& state, const Batch& batch);

  LanguageModel<float>& model() { return model_; }
  Index batch() const { return options_.batch; }
  /// Of the last step, before clipping; a buffer of the model's layout.
  const VectorOf<float>& gradients() const { return gradients_; }

 private:
  TrainingOptions options_;
  LanguageModel<float> model_;
  VectorOf<float> gradients_;
};

}  // namespace lipscope
