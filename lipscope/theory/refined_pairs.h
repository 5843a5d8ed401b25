#pragma once

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"
#include "lipscope/theory/split_paths.h"

/// The norm of the matrix N of the norms of J between pairs of tokens, as in
/// token_pairs.h, with the exact norms only where they count.
///
/// ‖J‖ ≤ ‖N‖ for every N with N_ij ≥ ‖J_ij‖, so that entries may be bounded by
/// different means. First all are bounded by their paths (split_paths.h),
///
///   N_ij = value_ij + ‖key part ij‖ + δ_ij‖query part i‖,
///   value_ij = min( ‖W_V‖‖W_O‖ max_h P^h_ij σ_j^h, Σ_h P^h_ij σ_j^h ν_h )
///
/// with σ_j^h ≥ ‖S_j^{V,h}‖, and ν_h = ‖W_V^h W_O^h‖, or where S is not the
/// identity ‖W_V^h‖‖W_O^h‖. (The first: W_V, then the P_ij^h S_j^{V,h} side by
/// side, then W_O.) With unit vectors u, v ≥ 0 that N
/// stretches most, uᵀNv = ‖N‖, and to first order an entry adds u_i N_ij v_j to
/// it. Those of the entries that add most are replaced by ‖J_ij‖ itself, u and
/// v are found anew, and so on, until what is left adds less than a hundredth
/// of the whole, or the work is done that is allowed: so many norms that their
/// d·e·min(d, e) together are 10¹¹ (1,766 of a layer of width 384, 220 of 768),
/// and n at least. Neither the clock nor the number of threads is asked.
///
/// Where the bound of split_paths is smaller it is taken. One dot-product head
/// without slopes has token_pairs, where all norms are exact and cheap.
namespace lipscope {

extern const Statement refined_pairs_statement;
Magnitude refined_pairs(const LayerParts& layer, const SplitWeights& split,
                        const LayerAt& at);

/// N as it ends after `most` exact norms at most, [n×n].
Matrix refined_pair_norms_above(const LayerParts& layer,
                                const SplitWeights& split, const LayerAt& at,
                                Index most);

}  // namespace lipscope
