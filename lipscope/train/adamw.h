#pragma once

#include "lipscope/train/layout.h"
#include "lipscope/train/training_options.h"

namespace lipscope {

/// The moments of Adam, buffers of the model's layout.
struct AdamMoments {
  VectorOf<float> first, second;
};

/// AdamW [Kingma15; Loshchilov19], step t = 1, 2, … at the given rate, on
/// gradients times `scale`:
///
///   m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,
///   w ← w − rate (m̂/(√v̂ + ε) + λw),   m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)
///
/// of all tensors, or of those that are chosen.
void adamw_step(const Layout& layout, VectorOf<float>& weights,
                const VectorOf<float>& gradients, AdamMoments& moments, Index t,
                double rate, double scale, const AdamWOptions& options,
                const TensorChoice& which = {});

/// |g|₂ of a part of a buffer, in double.
double gradient_norm(const VectorOf<float>& gradients, Index begin, Index size,
                     int threads = 1);

/// |g|₂ of all tensors of a layer, those with "h.3." in front of their names.
double layer_gradient_norm(const Layout& layout,
                           const VectorOf<float>& gradients, Index layer);

}  // namespace lipscope
