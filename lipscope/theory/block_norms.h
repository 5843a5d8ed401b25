#pragma once

#include "lipscope/theory/layer_at.h"

namespace lipscope {

/// The norm of the n×n matrix of the exact norms of the blocks B_ij of J, from
/// above: ‖J‖₂ is at most that.
///
///   B_ij = Σ_h [P^h_ij (W_V^h + w_i^hᵀ(v_j^h − v̄_i^h)) + δ_ij W_Q^hC_i^h]
///   W_O^h
///
/// (see split.h). One head: with FFᵀ ⪰ W_OW_Oᵀ in place of W_O a block has w
/// columns, and its Gram matrix [w×w] follows from that of W_V. Several heads:
/// each block [d×e] is formed.
double block_norms_above(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
