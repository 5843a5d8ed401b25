#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/train/language_model.h"
#include "lipscope/train/training_report.h"

namespace lipscope {

/// Of each layer, at the characters; empty for an LSTM.
std::vector<LayerConstant> layer_constants(LanguageModel<float>& model,
                                           const VectorOf<float>& weights,
                                           std::span<const int> characters,
                                           const MeasureOptions& options = {});

}  // namespace lipscope
