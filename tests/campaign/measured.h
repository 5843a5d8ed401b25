#pragma once

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"

/// Dense Jacobians, and norms of them, each from below.
namespace lipscope::campaign {

/// Of attention, by the closed form; q/k-norm over all heads has none and is
/// applied to every unit vector. TokensTooLarge where rounding leaves scores
/// unknown: there the library does not measure either.
Matrix reference_jacobian(const AttentionWeights& weights,
                          const AttentionOptions& options, const Matrix& x);

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
