#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/spectral/estimate.h"
#include "lipscope/theory/bound.h"
#include "lipscope/train/language_model.h"

namespace lipscope {

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

/// Of each layer, at the characters; empty for an LSTM.
std::vector<LayerConstant> layer_constants(LanguageModel<float>& model,
                                           const VectorOf<float>& weights,
                                           std::span<const int> characters,
                                           const MeasureOptions& options = {});

}  // namespace lipscope
