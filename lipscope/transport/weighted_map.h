#pragma once

#include "lipscope/operators/compose.h"

namespace lipscope {

/// Z ↦ D^{1/2} f(D^{−1/2} Z), D = diag(w): a map of tokens in the coordinates
/// z_i = √w_i x_i, in which small moves have the length that W₂ gives them,
///
///   W₂(μ, μ moved by dX)² = Σ_i w_i|dx_i|² = |dZ|²
///
/// (as long as no token gets near another one's place). Its Jacobian
/// D^{1/2} J D^{−1/2} has the parts √(w_i/w_j) J_ij, and its norm is the local
/// constant of f in W₂ where tokens move whole.
template <class Real>
MapPtr<Real> weighted(MapPtr<Real> f, const Vector& mass);

/// D^{1/2} X: where tokens are in the coordinates of `weighted`.
Matrix weighted_tokens(const Matrix& x, const Vector& mass);

/// D^{−1/2} Z: back again.
Matrix unweighted_tokens(const Matrix& z, const Vector& mass);

}  // namespace lipscope
