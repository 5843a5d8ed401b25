#pragma once

#include "lipscope/attention/weights.h"
#include "lipscope/theory/qi23.h"

namespace lipscope {

/// Scaled cosine attention, everywhere; with C the largest column sum of P at
/// spread τ (column_sums.h),
///
///   Lip₂ ≤ ν ε^{-1/2} ( τ‖W_Q‖ + √C (τ‖W_K‖ + ‖W_V‖) )   before W_O.
///
/// Any mask: rows of P sum to one over what is seen, and nothing more is used
/// of them.
///
/// Proof. N(z) = z/√(|z|² + ε) is ε^{-1/2}-Lipschitz and |N| < 1: biases do not
/// matter. As for column_sums: variances of v̂ are at most 1, |q̂|, |k̂| ≤ 1, and
/// the query moves row i by at most τ|dq̂_i|(ΣP|k̂|²)^{1/2}(ΣP|v̂−m|²)^{1/2}.
extern const Statement cosine_column_sums_statement;
Magnitude cosine_column_sums(const CosineNorms& norms, Index n,
                             const Mask& mask);

}  // namespace lipscope
