#pragma once

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"

/// ‖J(X)‖₂ itself, proved by one Cholesky factorisation: for heads, and for
/// layers of few tokens.
///
/// The Gram matrix G of J is made of its parts (gram_parts.h): n·r rows, with r
/// the width of the heads together or, where W_O is narrower, that of its
/// output. (A head of BERT has r = 64 in place of 768.) Forming it takes some
/// 2n³(H·w)² operations, the factorisation of t²I − G takes (n·r)³/3. With γ, ε
/// and S of gram_parts.h
///
///   ‖J‖ ≤ √(λ_max(G) + γS²) + (ε + γ)S + slope_rounding.
///
/// S itself is a bound; it is the answer for numbers so large or small that
/// products of them over- or underflow.
namespace lipscope {

extern const Statement exact_norm_statement;
Magnitude exact_norm(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
