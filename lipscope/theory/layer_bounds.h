#pragma once

#include <optional>
#include <vector>

#include "lipscope/model/layer.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/composition.h"

/// Bounds on the maps of one layer over all inputs, from the constants of its
/// parts.
namespace lipscope {

/// Every bound on the attention of a layer over sequences of n of these tokens
/// (see bounds.h), after the output projection or before it. Empty where none
/// is proved: untied L2, tied L2 with padding, rotary positions in other kinds
/// than dot-product, relative positions in others than that and tied L2,
/// q/k-norm, and position heads (for those see theory/stack_constant.h).
std::vector<Bound> attention_bounds(const LayerWeights& layer, bool project,
                                    const ModelMapOptions& options, Index n,
                                    const TokenSet& tokens);

/// The constants of the parts of a layer, over all inputs of each but for the
/// attention, whose constant is given. The MLP of a post-norm layer reads what
/// comes out of the first norm, that of a pre-norm one what comes out of its
/// own; without norms it must not be gated, and reads what it may. Parts that
/// the map or the layer does not have are 1.
BlockParts parts_everywhere(const LayerWeights& layer, MapName map,
                            Magnitude attention);

/// residual or block of a layer in the 2-norm over sequences of n tokens, with
/// the best bound on its attention, which reads `tokens`. In a pre-norm layer
/// every input passes the norm ahead of the attention: the bound holds
/// everywhere. Otherwise its scope is that of the attention. Nothing where the
/// attention has no bound that is a double, a gated MLP stands behind no norm,
/// or the layer does not carry x as it is.
std::optional<LayerBound> layer_bound_everywhere(const LayerWeights& layer,
                                                 MapName map,
                                                 const ModelMapOptions& options,
                                                 Index n,
                                                 const TokenSet& tokens);

}  // namespace lipscope
