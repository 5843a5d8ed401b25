#pragma once

#include <functional>
#include <optional>

#include "lipscope/theory/layer_bounds.h"

namespace lipscope {

/// Layer l of a model: kept by the caller, or read again (load_layer). The
/// reference has to hold until the next call.
using LayerSource = std::function<const LayerWeights&(Index layer)>;

/// A whole model over all inputs, from the input of layer 0 to the last hidden
/// state, in the 2-norm over sequences of n tokens: the product over its blocks
/// (layer_bound_everywhere) and its final norm.
///
/// The attention of a layer reads what the norm ahead of it lets through
/// (load_input_norm). Where no norm is ahead, it reads `entering`: tokens of
/// norm at most entering.radius; the radius is not read by kinds that are
/// Lipschitz everywhere.
///
/// Nothing where nothing is proved: where the attention of a layer has no bound
/// that is a double; where no norm is ahead of a layer, the kind is not
/// Lipschitz everywhere, and it is not layer 0 or no radius is given.
std::optional<ModelBound> model_bound_everywhere(const Model& model,
                                                 const LayerSource& layers,
                                                 const ModelMapOptions& options,
                                                 Index n,
                                                 const TokenSet& entering = {});

}  // namespace lipscope
