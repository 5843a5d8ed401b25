#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// ‖A‖₂ of a matrix that is there entry by entry.
struct DenseNorm {
  double value = 0.0;  ///< ‖A v‖ for `direction` v: σ₁, to rounding
  double upper = 0.0;  ///< above ‖A‖₂, with room for rounding
  double second = 0.0;  ///< σ₂, to about 1e-8 σ₁; 0 where there is only one
  Vector direction;     ///< the right singular vector of σ₁, of length 1
};

/// ‖A‖₂ of A [m×n] in f64, as the root of the largest eigenvalue λ₁ of the
/// smaller of AᵀA and AAᵀ, in O(m n min(m, n)). Squaring costs the small
/// singular values their digits, and the largest none.
///
/// Forming the Gram matrix errs by at most p u ‖A‖_F² in norm, p terms to a
/// sum and u = 2⁻⁵³ [Higham02]; the eigenvalue by a modest multiple of u λ₁,
/// for which 8 max(m, n) u λ₁ is allowed:
///
///   upper² = λ₁ (1 + 8 max(m, n) u) + 1.01 p u ‖A‖_F².
DenseNorm dense_norm(const Matrix& a);

}  // namespace lipscope
