#pragma once

#include "lipscope/core/rng.h"

/// Norms of dense Jacobians, each from below.
namespace lipscope::campaign {

/// ‖J‖₂; `quick`: from eigenvalues alone, to about 1e-8, for climbing.
double two_norm(const Matrix& j, bool quick = false);

/// The largest absolute row sum.
double inf_norm(const Matrix& j);

/// The norm induced by the largest token norm, n tokens to n tokens:
/// alternating (spectral/token_norm.h) on the dense matrix from one start.
double token_norm(const Matrix& j, Index n, const Rng& rng);

/// From ‖·‖_F to the largest token norm.
double row_norm(const Matrix& j, Index n);

}  // namespace lipscope::campaign
