#pragma once

#include <vector>

#include "lipscope/model/layer.h"
#include "lipscope/theory/blocks.h"
#include "lipscope/theory/bounds.h"

/// Bounds on what a transformer makes of attention: residual, block and model,
/// from the constants of their parts.
namespace lipscope {

/// Every bound on the attention of a layer over sequences of n of these tokens
/// (see bounds.h), after the output projection or before it. Empty where none
/// is proved: untied L2, and rotary positions in other kinds than dot-product.
std::vector<Bound> attention_bounds(const LayerWeights& layer, bool project,
                                    const ModelMapOptions& options, Index n,
                                    const TokenSet& tokens);

/// What the bound on an MLP takes of its weights, from above: made once.
struct MlpNorms {
  double up = 0.0, gate = 0.0, down = 0.0;    ///< ‖W‖₂
  double up_column = 0.0, gate_column = 0.0;  ///< max_j |w_j|
  double up_bias = 0.0, gate_bias = 0.0;      ///< max_j |b_j|
  bool gated = false;
  Activation activation = Activation::gelu;
};
MlpNorms mlp_norms(const MlpWeights& weights);

/// An MLP over tokens of norm at most R, in the 2-norm:
///
///   plain  ‖W_up‖ L_act ‖W_down‖, whatever R
///   gated  (‖W_gate‖ L_act max|u| + ‖W_up‖ max|g|) ‖W_down‖
///
/// Gated, with g = xW_gate + b_gate and u = xW_up + b_up, the Jacobian is
/// (W_gate diag(act'(g)∘u) + W_up diag(act(g))) W_down; |act(t)| ≤ |t| for all
/// activations here, and |u_j| ≤ R|w_j| + |b_j|.
Magnitude mlp_above(const MlpNorms& norms, double radius);

/// core and attn: attention; residual: 1 + L_attn L_n, or L_n(1 + L_attn) in a
/// post-norm model; block: see blocks.h. Without norms, whose parts are then 1,
/// both forms are the same.
Magnitude layer_bound(const BlockParts& parts, MapName map, bool pre_norm);

/// The constants of the parts of a layer, over all inputs of each but for the
/// attention, whose constant is given. The MLP of a post-norm layer reads what
/// comes out of the first norm, that of a pre-norm one what comes out of its
/// own; without norms it must not be gated, and reads what it may. Parts that
/// the map or the layer does not have are 1.
BlockParts parts_everywhere(const LayerWeights& layer, MapName map,
                            Magnitude attention);

}  // namespace lipscope
