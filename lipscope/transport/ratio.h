#pragma once

#include "lipscope/transport/distance.h"

namespace lipscope {

/// The measure after all its tokens have moved by step·dx, whole.
Measure moved(const Measure& measure, const Matrix& dx, double step);

/// The measure after token i has been cut into halves that moved by ±step·g,
/// where it stood among the others and at its position.
Measure parted(const Measure& measure, Index token, const Vector& g,
               double step);

/// What attention really did to the distance of two measures.
struct TransportRatio {
  Transport before;    ///< of μ and ν
  Transport after;     ///< of F(μ) and F(ν)
  double value = 0.0;  ///< after/before
  /// after from below over before from above: the Lipschitz constant over any
  /// set that holds both measures is at least this.
  double lower = 0.0;
  double relative_gap = 0.0;  ///< the larger of the two
};

/// d(F(μ), F(ν))/d(μ, ν) by exact transport. The measures must differ, and
/// under a mask have the same masses at the same positions.
TransportRatio transport_ratio(const AttentionWeights& weights,
                               const AttentionOptions& options,
                               const Measure& mu, const Measure& nu);

}  // namespace lipscope
