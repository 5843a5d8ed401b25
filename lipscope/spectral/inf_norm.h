#pragma once

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

struct InfNormOptions {
  /// The largest rows · cols that is swept; beyond it the sweep, one
  /// apply_adjoint for each row, is refused rather than run for hours.
  Index max_entries = Index{1} << 28;
  int threads = 0;  ///< over rows; 0: all cores
};

/// ‖A‖_∞ and where it is reached.
struct InfNorm {
  double value = 0.0;  ///< max_i Σ_j |A_ij|, exact but for rounding
  Index row = 0;       ///< the first i that reaches it
  Vector direction;  ///< v_j = ±1 with (A v)_row = ‖A‖_∞, ‖v‖_∞ = 1
  Index rows = 0;    ///< rows swept: all of them
};

/// The norm induced by the maximum norm on both sides, the largest absolute row
/// sum:
///
///   ‖A‖_∞ = max_{‖v‖_∞ ≤ 1} ‖A v‖_∞ = max_i Σ_j |A_ij|.
///
/// Exact: every row is made, as Aᵀe_i.
InfNorm inf_norm(const LinearOperator<double>& a,
                 const InfNormOptions& options = {});

}  // namespace lipscope
