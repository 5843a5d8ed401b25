#pragma once

#include <string>

#include "lipscope/train/language_model.h"
#include "lipscope/train/training_options.h"

/// The norms at which Newhouse25 keeps the matrices of a transformer, for
/// tokens whose features have a root mean square of at most 1. There every
/// matrix has the norm 1 between root mean squares, heads are [P_h v_h] W_O/3
/// with scores q·k/k in place of q·k/√k, and the MLP has GELU/1.1289. Here the
/// same maps have plain scores and a plain GELU, so that the factors are in the
/// norms of the matrices:
///
///   W_Q, W_K   k^{−1/4}: q·k/√k with both is q·k/k with both at 1
///   W_V        1/3
///   W_O        1
///   W_up       √(hidden/width): 1 between root mean squares
///   W_down     √(width/hidden) over GELU's largest slope
///
/// W_Q, W_K and W_V are each one matrix for all heads, as there. MLPs have no
/// biases there: here they stay at 0.
namespace lipscope {

/// Why a model cannot have these; empty if it can.
std::string objection_to_newhouse25(const LanguageModelConfig& config);

/// All matrices but the head, brought to these norms by the rule; no biases.
void keep_newhouse25_limits(const LanguageModel<float>& model,
                            VectorOf<float>& weights, SingularValues rule,
                            int threads = 0);

}  // namespace lipscope
