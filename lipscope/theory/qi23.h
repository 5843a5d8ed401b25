#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// What the bounds on scaled cosine attention take of a head, from above.
struct CosineNorms {
  double query = 0.0, key = 0.0, value = 0.0;  ///< ‖W_Q‖₂, ‖W_K‖₂, ‖W_V‖₂
  double tau = 0.0, nu = 0.0, epsilon = 0.0;
};

/// Scaled cosine attention with normalised values, everywhere, any mask, before
/// W_O [Qi23, with the ½ of Nair25 for softmax]:
///
///   Lip₂ ≤ n²ντε^{-1/2}‖W_K‖ + nντε^{-1/2}‖W_Q‖ + 2nνε^{-1/2}‖W_V‖
///
/// Under every mask, windows and padding too: no column of P sums to more than
/// n, and each of the three terms is at least that of cosine_column_sums with
/// √C ≤ √n.
extern const Statement qi23_cosine_statement;
Magnitude qi23_cosine(const CosineNorms& norms, Index n);

}  // namespace lipscope
