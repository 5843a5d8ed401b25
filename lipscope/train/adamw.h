#pragma once

#include "lipscope/train/layout.h"

namespace lipscope {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  ///< of matrices; not of tables, gains and biases
  int threads = 0;             ///< 0: all cores
};

/// The moments of Adam, buffers of the model's layout.
struct AdamMoments {
  VectorOf<float> first, second;
};

/// AdamW [Kingma15; Loshchilov19], step t = 1, 2, … at the given rate, on
/// gradients times `scale`:
///
///   m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,
///   w ← w − rate (m̂/(√v̂ + ε) + λw),   m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)
void adamw_step(const Layout& layout, VectorOf<float>& weights,
                const VectorOf<float>& gradients, AdamMoments& moments, Index t,
                double rate, double scale, const AdamWOptions& options);

/// |g|₂ of a part of a buffer, in double.
double gradient_norm(const VectorOf<float>& gradients, Index begin, Index size,
                     int threads = 1);

/// How the rate goes: a linear warm-up over the first `warmup` steps, then as
/// 1/√t, or as it is.
struct Schedule {
  enum class After { inverse_sqrt, fixed };

  double rate = 1e-3;  ///< the largest
  Index warmup = 100;
  After after = After::inverse_sqrt;

  double at(Index t) const;  ///< of step t = 1, 2, …
};

}  // namespace lipscope
