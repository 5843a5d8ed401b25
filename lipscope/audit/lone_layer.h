#pragma once

#include <optional>

#include "lipscope/attention/layer_norm.h"
#include "lipscope/attention/weights.h"

namespace lipscope::audit {

/// One attention layer by itself: from a file, from memory or made up.
struct LoneLayer {
  AttentionWeights weights;
  Matrix x;  ///< the tokens that came with the weights, or empty
  /// Of those tokens, for `meanfield`: masses and positions, or empty.
  Vector mass, position;
  std::optional<NormWeights> norm;  ///< ahead of the layer, if it is known
};

}  // namespace lipscope::audit
