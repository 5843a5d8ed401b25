#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// ‖A‖₂ of a matrix that is there entry by entry.
struct DenseNorm {
  double value = 0.0;  ///< σ₁, to rounding: neither from below nor from above
  double upper = 0.0;   ///< σ₁ (1 + 8 max(m, n) 2⁻⁵³): above ‖A‖₂
  double second = 0.0;  ///< σ₂; 0 where there is only one
  Vector direction;     ///< the right singular vector of σ₁, of length 1
};

/// ‖A‖₂ by a dense SVD in f64, in O(m n min(m, n)).
///
/// A backward stable SVD errs by a modest multiple of 2⁻⁵³ σ₁; `upper` allows
/// 8 max(m, n) of them. The SVD is checked, for σ₁ = ‖A v‖ and Σσ² = ‖A‖_F²,
/// before it is believed.
DenseNorm dense_norm(const Matrix& a);

}  // namespace lipscope
