#pragma once

#include <optional>

#include "lipscope/theory/layer_at.h"

/// How what a head compares and mixes moves with one token. The features q_i,
/// k_i and v_i of token i are made of its projections x_iW_Q, x_iW_K and x_iW_V
/// (turned by its position, normalised, with one more feature for distances:
/// attention/kinds.h), so that
///
///   dq_i = dx_i W_Q S_i^Q,   dk_i = dx_i W_K S_i^K,   dv_i = dx_i W_V S_i^V
///
/// with a slope S of each token and head. In dot-product attention S is the
/// identity; rotary positions make it the rotation of the position, with the
/// norm 1. The slopes are never formed: the functions here take rows y to ySᵀ,
/// by the same code that takes cotangents back in attention/.
namespace lipscope {

enum class Feature { query, key, value };

/// y ↦ ySᵀ without the rotation, for rows y of head h: row i at token i, or all
/// of them at one given token.
Matrix back_through_kind(const LayerParts& layer, const LayerAt& at, Index h,
                         Feature which, const Matrix& y,
                         std::optional<Index> token = {});

/// Rows of the projections of queries, `each` of them for every token and all
/// heads side by side, turned back from the places of their tokens. Row
/// i·each + s belongs to token i.
void turn_queries_back(const LayerParts& layer, const LayerAt& at, Index each,
                       Matrix& y);

/// q_i S_j^Kᵀ for all j and heads, [n×H·k]: what the logits s_ij say of the
/// projections of the keys.
Matrix query_at_keys(const LayerParts& layer, const LayerAt& at, Index i);

/// ‖S_j^V‖ for each token and head from above, [n×H].
Matrix value_slopes_above(const LayerParts& layer, const LayerAt& at);

/// What rounding in slopes and values may add to ‖J‖: numbers cancel in S (a
/// normalised row does not feel its own direction), and what is left of them
/// may be smaller than their rounding. With σ at least as large as these
/// numbers,
///
///   10⁻¹³ n^{3/2} ‖W_O‖_F Σ_h ( σ_V‖W_V‖_F + σ_K‖W_K‖_F max|q| 2max|v|
///                               + σ_Q‖W_Q‖_F max|k| 2max|v| )
///
/// is far above it: 10⁻¹³ is for sums of some hundred terms, and the other
/// factors are those of ‖J‖ with nothing cancelled and P' ≤ 1. σ is ‖S‖_F: in
/// every direction but the row's own nothing cancels. With one feature there is
/// no other direction, and σ is |feature|/|projection|, or |S| at 0. ‖W_V‖_F is
/// LayerParts::value_size, so that rounding in weights that are a product is in
/// the sum as well, and max|v| is at least max|x| times it where values are as
/// they are. The sum is 0 for features that are their projections, turned or
/// not.
double slope_rounding(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
