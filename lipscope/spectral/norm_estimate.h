#pragma once

#include <limits>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A spectral norm found from below, and how well it was found.
struct NormEstimate {
  /// ‖A v‖ for the unit `direction` found: never above ‖A‖₂, up to rounding in
  /// the precision of the operator.
  double value = 0.0;
  /// ‖AᵀA v − σ² v‖ / σ²: how nearly v is a singular vector. Not a bound on
  /// ‖A‖₂: any singular vector has residual 0.
  double residual = 0.0;
  int steps = 0;           ///< applications of A, and of Aᵀ
  bool converged = false;  ///< all that was asked for was reached
  Vector direction;        ///< v, the most amplified input direction found
  /// ‖A‖₂ ≤ upper_factor · value except with the probability asked for, over
  /// the random start and in exact arithmetic; +∞ while nothing can be said.
  double upper_factor = std::numeric_limits<double>::infinity();
};

}  // namespace lipscope
