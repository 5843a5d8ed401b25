#pragma once

#include <optional>

#include "lipscope/theory/layer_at.h"

/// How what a head compares and mixes moves with one token. The features q_i,
/// k_i and v_i of token i are made of its projections x_iW_Q, x_iW_K and x_iW_V
/// (normed, turned by its position, normalised, with one more feature for
/// distances: attention/query_key_norm.h, attention/kinds.h), so that
///
///   dq_i = dx_i W_Q S_i^Q,   dk_i = dx_i W_K S_i^K,   dv_i = dx_i W_V S_i^V
///
/// with a slope S of each token and head. In dot-product attention S is the
/// identity; rotary positions make it the rotation of the position, with the
/// norm 1. The slopes are never formed: the functions here take rows y to ySᵀ,
/// by the same code that takes cotangents back in attention/.
///
/// q/k-norm z ↦ γ∘z s, s = 1/√(|z|²/D + ε), has the slope s(I − uᵀu/D)diag(γ),
/// u = s z, ahead of the rotation. Where it is one of all heads, the factor
/// I − uᵀu/D mixes heads. It then stays out of what is called S here, and is
/// applied where all heads come together, as y ↦ y − (y·û)û, û = u/√D
/// (shared_direction): |û| ≤ 1, so that it is a contraction.
namespace lipscope {

enum class Feature { query, key, value };

/// y ↦ ySᵀ for rows y of head h, all of them at one token.
Matrix to_projections(const LayerParts& layer, const LayerAt& at, Index h,
                      Feature which, const Matrix& y, Index token);

/// ‖S‖_F of head h at a token, and where numbers cancel in S of what they are
/// before, from above.
double slope_size(const LayerParts& layer, const LayerAt& at, Index h,
                  Feature which, Index token);

/// q_i S_j^Kᵀ for the tokens j of a range and all heads, [size×H·k]: what the
/// logits s_ij say of the projections of these keys.
Matrix query_at_keys(const LayerParts& layer, const LayerAt& at, Index i,
                     const TokenRange& keys);

/// û of the queries or keys of all tokens, [n×H·k]; empty unless q/k-norm is
/// one of all heads.
Matrix shared_direction(const LayerParts& layer, const LayerAt& at,
                        Feature which);

/// ‖S_j^V‖ for each token and head from above, [n×H].
Matrix value_slopes_above(const LayerParts& layer, const LayerAt& at);

/// (S_i^{Q,h}C_i^h)ᵀ, C_i^h = Σ_j P'^h_ij k_jᵀ(v_j − c_i), for all tokens and
/// heads: row i·w + s has row s of token i, [n·w×H·k]; `centre` has the c_i.
Matrix query_parts(const LayerParts& layer, const LayerAt& at,
                   const Matrix& centre);

/// What rounding in slopes and values may add to ‖J‖: numbers cancel in S (a
/// normalised row does not feel its own direction), and what is left of them
/// may be smaller than their rounding. With σ at least as large as these
/// numbers,
///
///   10⁻¹³ n^{3/2} ‖W_O‖_F Σ_h ( σ_V‖W_V‖_F + σ_K‖W_K‖_F max|q| 2max|v|
///                               + σ_Q‖W_Q‖_F max|k| 2max|v| )
///
/// is far above it: 10⁻¹³ is for sums of some hundred terms (q/k-norm over
/// heads has sums of D: 4D u more), and the other factors are those of ‖J‖ with
/// nothing cancelled and P' ≤ 1. σ is ‖S‖_F: in every direction but the row's
/// own nothing cancels. With one feature there is no other direction, and σ is
/// |feature|/|projection|, or |S| at 0; of q/k-norm it is s max|γ|. ‖W_V‖_F is
/// LayerParts::value_size, so that rounding in weights that are a product is in
/// the sum as well, and max|v| is at least max|x| times it where values are as
/// they are. The sum is 0 for features that are their projections, turned or
/// not.
double slope_rounding(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
