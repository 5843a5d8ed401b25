#pragma once

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"
#include "lipscope/theory/split_paths.h"

/// A bound for layers from the norms of J between pairs of tokens, exact where
/// they count, and from the norms of its rows.
///
/// Pairs. ‖J‖ ≤ ‖N‖ for every N with N_ij ≥ ‖J_ij‖, so that entries may be
/// bounded by different means. First all are bounded by their paths
/// (split_paths.h),
///
///   N_ij = value_ij + ‖key part ij‖ + δ_ij‖query part i‖,
///   value_ij = min( ‖W_V‖‖W_O‖ max_h P^h_ij σ_j^h, Σ_h P^h_ij σ_j^h ν_h )
///
/// with σ_j^h ≥ ‖S_j^{V,h}‖, and ν_h = ‖W_V^h W_O^h‖, or where S is not the
/// identity ‖W_V^h‖‖W_O^h‖. (The first: W_V, then the P_ij^h S_j^{V,h} side by
/// side, then W_O.) With unit vectors u, v ≥ 0 that N stretches most, uᵀNv =
/// ‖N‖, and to first order an entry adds u_i N_ij v_j to it. Those of the
/// entries that add most are replaced by ‖J_ij‖ itself, u and v are found anew,
/// and so on, until what is left adds less than a hundredth of the whole, or
/// the work is done that is allowed: so many norms that their d·e·min(d, e)
/// together are 5·10¹⁰ (883 of a layer of width 384, 110 of 768), and n at
/// least. Neither the clock nor the number of threads is asked.
///
/// Rows. With G_ii' = Σ_j J_ijJ_i'jᵀ the norm of J² is at most that of the
/// matrix of the ‖G_ii'‖, and
///
///   ‖G_ii'‖ ≤ M_ii' = min( r_i r_i', Σ_j N_ijN_i'j ),   r_i = ‖(J_i1, J_i2,
///   …)‖
///
/// so that ‖J‖ ≤ √‖M‖: never above ‖N‖, nor above (Σ_i r_i²)^{1/2}. The latter
/// is small where all tokens look at the same few, but each head at another:
/// then different parts of a row hardly add up.
///
/// Where the bound of split_paths is smaller it is taken. One dot-product head
/// without slopes has all norms of pairs, which are cheap there.
namespace lipscope {

extern const Statement refined_pairs_statement;
Magnitude refined_pairs(const LayerParts& layer, const SplitWeights& split,
                        const LayerAt& at);

/// N as it ends after `most` exact norms at most, [n×n].
Matrix refined_pair_norms_above(const LayerParts& layer,
                                const SplitWeights& split, const LayerAt& at,
                                Index most);

}  // namespace lipscope
