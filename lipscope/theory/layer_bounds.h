#pragma once

#include <vector>

#include "lipscope/model/layer.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/composition.h"

/// Bounds on the maps of one layer over all inputs, from the constants of its
/// parts.
namespace lipscope {

/// Every bound on the attention of a layer over sequences of n of these tokens
/// (see bounds.h), after the output projection or before it. Empty where none
/// is proved: untied L2, and rotary positions in other kinds than dot-product.
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

}  // namespace lipscope
