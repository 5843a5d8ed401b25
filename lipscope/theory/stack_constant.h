#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/theory/input_set.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {

struct Stack;

/// One factor of a constant.
struct StackPart {
  Index layer = 0;    ///< what follows the layers has their number
  std::string part;   ///< "attention", "attention_norm", "mlp", "mlp_norm",
                      ///< "last_norm", "head"
  std::string bound;  ///< what proves it: "l2_kernel", "weight norms", …
  InputSet scope;     ///< of the part's own input
  Magnitude value;    ///< without the residual around it
};

/// How strongly a stack amplifies a change of its input, from above: causal
/// mask, 2-norm over sequences of up to `context` tokens.
struct StackConstant {
  std::vector<StackPart> parts;  ///< as far as there are bounds
  /// input of layer 0 → last hidden state (after the last norm), and → logits;
  /// nothing where a part has no bound.
  std::optional<Magnitude> hidden, logits;
  std::string unbounded;  ///< that part and why it has none; else empty
  InputSet scope = InputSet::everywhere();  ///< or a ball
};

/// The product over the blocks of (1 + L_attention L_norm)(1 + L_mlp L_norm) in
/// a pre-norm model, of L_norm(1 + L_attention) L_norm(1 + L_mlp) otherwise,
/// and of the last norm; times ‖W_head‖ for the logits.
///
///   attention  the smallest of theory/bounds.h, over all inputs where a kind
///              has one there, else over what the norm layer ahead lets
///              through, else over a ball; l2-untied has none
///   mlp        ‖W_up‖ L_act ‖W_down‖
///   norm       max|γ|/√ε
///
/// Dot-product attention with no norm ahead has a bound only if `radius` says
/// how long the tokens are that enter layer 0. From there on they are followed:
/// attention moves a token by a mean of tokens times W_V W_O, so that |x +
/// f(x)| ≤ R(1 + ‖W_V W_O‖) + |f(0)|, and the MLP by at most L_mlp R +
/// |mlp(0)|.
///
/// Throws std::invalid_argument for weights of attention that do not sum to
/// one, rotary positions and gated MLPs.
StackConstant stack_constant(const Stack& stack,
                             std::optional<double> radius = {});

}  // namespace lipscope
