#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// An eigenvalue of a symmetric matrix, and how nearly it is one.
struct EigenvalueEstimate {
  double value = 0.0;
  /// |Gv − λv|/λ for the unit vector v found; 0 where λ is not above 0. Where v
  /// is near the leading eigenvector, λ is short of the largest eigenvalue by
  /// about the square of this, relatively.
  double residual = 0.0;
};

/// The largest eigenvalue of a symmetric matrix, whose sign counts, from below
/// up to rounding: by at most `steps` steps of Lanczos [GolubVanLoan13] with
/// full reorthogonalisation, from a start that is the same for all matrices of
/// a size. A step costs one product with G. Large matrices are multiplied in
/// pieces, on several threads (0: all cores).
///
/// golub_kahan finds the largest absolute value, and takes two products a step.
EigenvalueEstimate largest_eigenvalue(const Matrix& g, Index steps,
                                      int threads = 1);

}  // namespace lipscope
