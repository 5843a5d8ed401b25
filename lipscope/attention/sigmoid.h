#pragma once

#include "lipscope/attention/weights.h"

namespace lipscope {

/// Sigmoid attention weights [Ramapuram24]: σ(s + b) for each token a row sees,
/// exactly 0 for the hidden ones. The rows do not sum to one.
template <class Real>
MatrixOf<Real> sigmoid_rows(MatrixOf<Real> scores, const Mask& mask,
                            Real shift);

/// The product with the derivative p(1 − p), entry by entry. It is diagonal:
/// the same function serves tangents and gradients.
template <class Real>
MatrixOf<Real> sigmoid_derivative(const MatrixOf<Real>& p, MatrixOf<Real> t);

}  // namespace lipscope
