#pragma once

#include "lipscope/model/layer.h"
#include "lipscope/theory/magnitude.h"

/// How the constants of attention, norm layers and MLPs compose to that of a
/// layer: on plain numbers, carried with their log10.
namespace lipscope {

/// Of x + g(x): 1 + Lip(g).
Magnitude residual_bound(Magnitude inner);

/// The constants of the parts of a transformer block, each over where it is
/// used.
struct BlockParts {
  Magnitude attention, attention_norm, mlp, mlp_norm;
};
/// x + attn(norm x), then x + mlp(norm x): (1 + L_attn L_n1)(1 + L_mlp L_n2).
Magnitude pre_norm_block(const BlockParts& parts);
/// norm(x + attn x), then norm(x + mlp x): L_n1(1 + L_attn) L_n2(1 + L_mlp).
Magnitude post_norm_block(const BlockParts& parts);

/// core and attn: attention; residual: 1 + L_attn L_n, or L_n(1 + L_attn) in a
/// post-norm model; block: one of the two above. Without norms, whose parts are
/// then 1, both forms are the same.
Magnitude layer_bound(const BlockParts& parts, MapName map, bool pre_norm);

}  // namespace lipscope
