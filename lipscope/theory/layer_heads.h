#pragma once

#include <vector>

#include "lipscope/attention/head_weights.h"
#include "lipscope/theory/magnitude.h"

/// How the constants of heads make that of their layer.
namespace lipscope {

/// A layer cut into its chosen heads, with the norms of what joins them, from
/// above; 1 where there is no output projection, or none is asked for (the
/// heads then have no output either).
struct LayerHeads {
  std::vector<HeadWeights> heads;
  bool projected = false;
  double output = 1.0;      ///< ‖W_O‖₂ of the chosen heads' rows
  double output_inf = 1.0;  ///< ‖W_Oᵀ‖_inf
};

/// `chosen` empty: all of them.
LayerHeads layer_heads(const AttentionWeights& weights,
                       const std::vector<Index>& chosen, bool project);

/// Constants of the heads: with V = W_V, and with V = W_V W_O,h.
struct HeadBounds {
  std::vector<Magnitude> alone, projected;
};

/// That of the layer: the sum of `projected`, or ‖W_O‖(Σ_h alone²)^{1/2},
/// whichever is smaller; without the projection (Σ_h alone²)^{1/2}. Both hold
/// in the norms 2, inf and token: heads add up in the one and stand side by
/// side in each token in the other.
Magnitude together(const LayerHeads& layer, const HeadBounds& heads);

}  // namespace lipscope
