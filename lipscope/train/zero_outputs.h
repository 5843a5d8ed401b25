#pragma once

#include <string>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/layout.h"
#include "lipscope/train/training_options.h"

/// A start in which no layer adds anything: the matrices by which attention and
/// MLP write, W_O and W_down, are zero. Their gradients are not, so that they
/// learn from the first step on, and what is ahead of them from the second.
namespace lipscope {

/// Why a model cannot begin so; empty if it can.
std::string objection_to_zero_outputs(const LanguageModelConfig& config,
                                      const WeightLimits& limits);

void make_outputs_zero(const Layout& layout, VectorOf<float>& weights);

}  // namespace lipscope
