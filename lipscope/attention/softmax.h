#pragma once

#include <vector>

#include "lipscope/attention/weights.h"

namespace lipscope {

/// The softmax of each row over the tokens it sees; hidden entries are exactly
/// 0. Shifted by the largest visible score, so that nothing overflows.
template <class Real>
MatrixOf<Real> softmax_rows(MatrixOf<Real> scores, const Mask& mask);

/// The same where row i sees seen[i].
template <class Real>
MatrixOf<Real> softmax_rows(MatrixOf<Real> scores,
                            const std::vector<TokenRange>& seen);

/// The row-wise product with the softmax Jacobian diag(p) − p pᵀ at p.
/// It is symmetric: the same function pushes tangents forward and pulls
/// gradients back.
template <class Real>
MatrixOf<Real> softmax_derivative(const MatrixOf<Real>& p, MatrixOf<Real> t);

}  // namespace lipscope
