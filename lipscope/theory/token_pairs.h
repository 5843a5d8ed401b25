#pragma once

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"

namespace lipscope {

/// The norms of the parts J_ij [d×e] of the Jacobian, how token j acts on token
/// i, from above, [n×n]:
///
///   J_ij = Σ_h [P^h_ij W_V^h S_j^{V,h} + P'^h_ij w_ij^hᵀ(v_j^h − c_i^h)
///               + δ_ij W_Q^h S_i^{Q,h}C_i^h] W_O^h
///
/// (see split_paths.h). It is 0 for a token j ≠ i that i does not see; J_ii is
/// there also where i does not see itself (P_ii = 0: padding). One dot-product
/// head without slopes: with FFᵀ ⪰ W_OW_Oᵀ in place of W_O a part J_ij has w
/// columns; off the diagonal its Gram matrix is that of W_V with a change of
/// rank two, and within a percent; on it λ(G) ≤ ‖G⁴‖_F^{1/4}. Otherwise each
/// J_ij is formed.
Matrix token_pair_norms_above(const LayerParts& layer, const LayerAt& at);

/// The norm of that matrix, from above: ‖J‖₂ is at most that.
extern const Statement token_pairs_statement;
Magnitude token_pairs(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
