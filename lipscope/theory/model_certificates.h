#pragma once

#include <optional>
#include <vector>

#include "lipscope/theory/layer_certificates.h"

namespace lipscope {

/// A whole model at given inputs, from the input of layer 0 to the last hidden
/// state, in the 2-norm: the product over its blocks, each at what the one
/// before makes of the input (LayerCertificates), and over its final norm at
/// what comes out of the last.
///
/// x has `sequences` sequences of equal length under one another; one answer
/// for each, nothing where nothing is proved. `which` certificate for the
/// attention; without it the usual one of each layer. Layers are read from the
/// model one after another.
std::vector<std::optional<ModelBound>> model_certificates(
    const Model& model, const ModelMapOptions& options,
    std::optional<Certificate> which, const Matrix& x, Index sequences);

}  // namespace lipscope
