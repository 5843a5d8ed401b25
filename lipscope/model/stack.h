#pragma once

#include <optional>
#include <vector>

#include "lipscope/model/layer.h"

namespace lipscope {

/// The weights of a causal model from the input of layer 0 to its logits, in
/// f64.
struct Stack {
  /// Of one kind and under the causal mask. Norms without a gain are not there:
  /// in all layers, or in none. What an attention or an MLP is divided by is in
  /// its last matrix.
  std::vector<LayerWeights> layers;
  Index context = 1;  ///< tokens at most
  std::optional<NormWeights> last_norm = {};
  Matrix head = {};       ///< logits = x W + b, W [d×V]; empty: none
  Vector head_bias = {};  ///< b, which changes no constant; empty: none

  Kind kind() const { return layers.front().kind; }
};

/// All layers of a model, its last norm and its language-model head. InputError
/// for BERT, which does not predict the next token, and with what is missing.
Stack load_stack(const Model& model);

/// The stack as a map of one sequence, from the input of layer 0 to the last
/// hidden state after its norm; without the head.
MapPtr<double> stack_map(const Stack& stack, int threads = 0);

}  // namespace lipscope
