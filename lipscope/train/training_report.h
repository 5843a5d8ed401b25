#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "lipscope/operators/norm.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/theory/bound.h"
#include "lipscope/train/text_score.h"

/// What is seen while a model learns.
namespace lipscope {

/// What a step found.
struct StepReport {
  double nll = 0.0;            ///< of its batch, before the step, in nats
  double gradient_norm = 0.0;  ///< before clipping
  double rate = 0.0;
};

/// A constant that was promised, input of layer 0 → logits: causal, up to
/// `context` tokens.
struct PromisedConstant {
  double limit = 0.0;
  double certified = 0.0;  ///< by theory/stack_constant.h: at most the limit
  Norm norm = Norm::two;   ///< or token
  InputSet scope = InputSet::everywhere();
  /// No token that enters layer 0 is longer. A model may answer a small
  /// constant by long embeddings: the product of the two has no unit.
  double longest_token = 0.0;
  Index width = 0, characters = 0;  ///< of a token, of the logits
  /// The same over the same tokens in the token norm, or in the 2-norm where
  /// the promise is in the token norm; nothing where none is proved.
  std::optional<double> in_other_norm = {};

  /// The same between root mean squares over features in place of lengths.
  double certified_rms() const {
    return certified * std::sqrt(static_cast<double>(width) /
                                 static_cast<double>(characters));
  }
};

/// How strongly the attention of one layer amplifies a change of its input, in
/// the 2-norm and under the causal mask, after W_O and without the residual.
struct LayerConstant {
  Index layer = 0, n = 0;
  double radius = 0.0;   ///< of the longest token that it reads
  Measurement measured;  ///< at what the layer reads of the given characters
  /// The smallest that is proved: everywhere for l2, over the ball of that
  /// radius for dot, nothing for l2-untied.
  std::optional<Bound> above;
};

/// What was seen after a step. Losses are in nats for each character.
struct Evaluation {
  Index step = 0;
  double train_nll = 0.0;       ///< of the step's batch, before the step
  Index train_characters = 0;   ///< that were predicted in it
  double valid_nll = 0.0;       ///< of the validation text
  double valid_accuracy = 0.0;  ///< the share that was predicted in it
  Index valid_characters = 0;
  Index best_step = 0;  ///< of the least validation loss so far
  double rate = 0.0;
  double gradient_norm = 0.0;  ///< of the batch, before clipping
  std::vector<double> layer_gradient_norms;
  std::vector<LayerConstant> attention;  ///< empty if it is not measured
  double characters_per_second = 0.0;
  /// Of these weights, where the constant of the whole model is limited.
  std::optional<PromisedConstant> promised = {};
};

/// How a run ended.
struct RunSummary {
  Index steps = 0, best_step = 0;
  double best_valid_nll = 0.0, test_nll = 0.0;  ///< both of the best weights
  Index test_characters = 0;
  /// Of the last step's weights, over the whole last tenth of the text:
  /// nothing was chosen by what judges them.
  TextScore last_tenth;
  Index last_tenth_characters = 0;
  /// The same in Newhouse25's windows (train/sliding_windows.h); nothing where
  /// the last tenth is shorter than these.
  std::optional<TextScore> newhouse25_windows = {};
  bool finished = true;  ///< false if keep_going ended it
  /// Of the best weights, where the constant is limited and the run finished.
  std::optional<PromisedConstant> promised = {};
};

}  // namespace lipscope
