#pragma once

#include <vector>

namespace lipscope {

/// The largest singular value of a matrix and its right singular vector.
struct TopPair {
  double value = 0.0;
  std::vector<double> y;  ///< ‖y‖ = 1
};

/// The top singular pair of the upper bidiagonal B with alpha ≥ 0 on its
/// diagonal and beta ≥ 0 above it (of which more entries may be given than are
/// read), in O(m) by bisection and inverse iteration on BᵀB. The value is ‖B y‖
/// for the y returned.
TopPair top_of_bidiagonal(const std::vector<double>& alpha,
                          const std::vector<double>& beta);

}  // namespace lipscope
