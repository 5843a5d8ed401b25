#pragma once

#include <optional>
#include <string>

#include "lipscope/train/language_model.h"
#include "lipscope/train/training_options.h"

/// Weights that are kept within limits while they are learnt. What is done
/// depends on the weights alone: a run that goes on from a checkpoint does what
/// it would have done.
namespace lipscope {

/// Why models of this configuration cannot be kept within the limits; empty if
/// they can.
std::string objection(const WeightLimits& limits,
                      const LanguageModelConfig& config);

/// Weights as they begin, brought within the limits. For a limited constant
/// characters are embedded ten times as long as otherwise, positions twice:
/// there is no norm layer to bring tokens to unit size, and a model that may
/// amplify little needs much to read.
void begin_within(const WeightLimits& limits, const LanguageModel<float>& model,
                  VectorOf<float>& weights, int threads = 0);

/// Weights after a step, brought back. The constant is Π(1 + L_branch) L_head;
/// where it is above the limit, the largest factors are cut to one level t,
///
///   Σ_i min(log factor_i, share_i t) = log limit,
///
/// so that what one part does not need is there for the others. The share of
/// an attention is half that of an MLP or of the head: most of its bound is
/// what no input reaches. In a matrix that has to shrink by a little, the
/// leading singular values shrink (control/spectral_trim.h) and the rest stays;
/// what is left above the level is taken off by scaling.
void keep_within(const WeightLimits& limits, const LanguageModel<float>& model,
                 VectorOf<float>& weights, int threads = 0);

/// RunError if these weights are outside the limits, by the whole proof of
/// theory/stack_constant.h and theory/norms.h. Nothing is returned where the
/// constant is not limited.
std::optional<PromisedConstant> require_within(
    const WeightLimits& limits, const LanguageModel<float>& model,
    const VectorOf<float>& weights);

}  // namespace lipscope
