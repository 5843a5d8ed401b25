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

/// Weights as they begin, brought within the limits. Under a rule for singular
/// values matrices begin orthogonal, each of a tensor's blocks by itself. Where
/// the length of tokens is limited, all characters begin that long; where only
/// the constant is, they are embedded ten times as long as otherwise, positions
/// twice: there is no norm layer to bring tokens to unit size, and a model that
/// may amplify little needs much to read.
void begin_within(const WeightLimits& limits, const LanguageModel<float>& model,
                  VectorOf<float>& weights, int threads = 0);

/// Whether it has queries, keys or values of heads that compare.
bool of_comparing_heads(const Layout::Tensor& tensor);

/// Weights after a step, brought back. With a rule for singular values every
/// matrix is kept at the norm 1 (W_down at 1 over the activation's slope), and
/// the head at what the layers leave of the constant. Queries and keys of heads
/// that compare are kept at what the limit of scores gives them, where tokens
/// are limited, and their values at 1 over the constant that the head then has.
/// With MatrixLimits::newhouse25 the norms are those of that file. Without a
/// rule the constant is shared among all matrices (train/shared_constant.h).
void keep_within(const WeightLimits& limits, const LanguageModel<float>& model,
                 VectorOf<float>& weights, int threads = 0);

/// RunError if these weights are outside the limits, by the whole proof of
/// theory/stack_constant.h and theory/norms.h. Nothing is returned where the
/// constant is not limited.
std::optional<PromisedConstant> require_within(
    const WeightLimits& limits, const LanguageModel<float>& model,
    const VectorOf<float>& weights);

}  // namespace lipscope
