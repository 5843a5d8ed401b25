#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/model/layer.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/magnitude.h"

/// How the constants of attention, norm layers and MLPs compose to that of a
/// layer, and those of layers to that of a model: on plain numbers, carried
/// with their log10.
namespace lipscope {

/// Of x + g(x): 1 + Lip(g).
Magnitude residual_bound(Magnitude inner);

/// The constants of the parts of a transformer block, each over where it is
/// used. What stands between attention or MLP and the residual sum, a norm or a
/// factor, is in theirs.
struct BlockParts {
  Magnitude attention, attention_norm, mlp, mlp_norm;
};
/// x + attn(norm x), then x + mlp(norm x): (1 + L_attn L_n1)(1 + L_mlp L_n2).
Magnitude pre_norm_block(const BlockParts& parts);
/// norm(x + attn x), then norm(x + mlp x): L_n1(1 + L_attn) L_n2(1 + L_mlp).
Magnitude post_norm_block(const BlockParts& parts);

/// x + attn(norm x) + mlp(norm x): 1 + L_attn L_n1 + L_mlp L_n2.
Magnitude parallel_block(const BlockParts& parts);

/// core and attn: attention; residual: 1 + L_attn L_n, or L_n(1 + L_attn) in a
/// post-norm model; block: one of the two above. Without norms, whose parts are
/// then 1, both forms are the same.
Magnitude layer_bound(const BlockParts& parts, MapName map, bool pre_norm);

/// The same of a layer, whose attention and MLP may stand beside each other.
Magnitude layer_bound(const BlockParts& parts, MapName map,
                      const LayerWeights& layer);

/// A bound on residual or block of one layer in the 2-norm, and what it is made
/// of.
struct LayerBound {
  Bound bound;       ///< "block(column_sums)"
  Bound attention;   ///< of the attention inside
  BlockParts parts;  ///< with 1 for what the map does not have
  Magnitude value;   ///< of the bound, to multiply with others
};

/// Names the bound after its map and that of its attention, and cites both.
LayerBound named_layer_bound(MapName map, const Bound& attention,
                             const BlockParts& parts, Magnitude value,
                             const InputSet& scope);

/// A bound on a model, from the input of layer 0 to the last hidden state.
struct ModelBound {
  Bound bound;                    ///< "model(block(column_sums))"
  std::vector<Magnitude> layers;  ///< the constants of its blocks, in order
};

/// The product over the blocks and the final norm, if there is one, times 1 +
/// allowance. It cites the block whose attention has the largest bound, the
/// first of equals, and has its scope.
ModelBound model_bound(const std::vector<LayerBound>& blocks,
                       std::optional<Magnitude> final_norm,
                       double allowance = 0.0);

}  // namespace lipscope
