#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/operators/norm.h"
#include "lipscope/theory/input_set.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {

struct Stack;

/// One factor of a constant.
struct StackPart {
  Index layer = 0;    ///< what follows the layers has their number
  std::string part;   ///< "position_heads", "attention", "attention_norm",
                      ///< "mlp", "mlp_norm", "last_norm", "head"
  std::string bound;  ///< what proves it: "l2_kernel", "weight norms", …
  InputSet scope;     ///< of the part's own input
  /// Without the residual around it; by "centred slopes" with it.
  Magnitude value;
};

/// How strongly a stack amplifies a change of its input, from above, over
/// sequences of up to `context` tokens under the causal mask.
struct StackConstant {
  std::vector<StackPart> parts;  ///< as far as there are bounds
  /// input of layer 0 → last hidden state (after the last norm), and → logits;
  /// nothing where a part has no bound.
  std::optional<Magnitude> hidden, logits;
  std::string unbounded;  ///< that part and why it has none; else empty
  InputSet scope = InputSet::everywhere();  ///< or a ball
};

struct StackConstantOptions {
  Norm norm = Norm::two;  ///< or token: the largest token norm in and out
  /// |x_i| ≤ R for the tokens that enter layer 0; nothing: they may be anywhere
  std::optional<double> radius = {};
};

/// The product over the blocks of the constants of their two sub-layers, and of
/// the last norm; times ‖W_head‖ for the logits. A sub-layer x ↦ carry x +
/// share f(x) with f of constant L has carry + share L: 1 + L of x + f(x),
/// (1 − α) + αL of a convex join, L of f alone. A norm ahead of f is in L, one
/// behind the sum multiplies it.
///
///   position heads  (Σ_h c_h²(Σ_t p_th)²‖V_h‖²)^{1/2}, in the 2-norm less
///                   (theory/position_heads_bound.h), everywhere
///   attention       heads that compare: the smallest of theory/bounds.h in the
///                   norm, over all inputs where a kind has one there, else
///                   over what the norm layer ahead lets through, else over a
///                   ball; l2-untied has none. Dot-product heads may be
///                   rotated, and these and l2 may have a relative bias
///                   (theory/relative_positions.h). Of heads that W_O brings to
///                   different coordinates the squares add up, where that is
///                   smaller
///   both            (P² + A²)^{1/2} where W_O is zero in the coordinates of
///                   the position heads, since |y|² is then the sum of both
///                   squares, in each token and over all; else P + A
///   mlp             ‖W_up‖ L_act ‖W_down‖; in layers of other forms than x +
///                   f(x) by centred slopes, where that is smaller
///                   (theory/centred_slopes.h)
///   norm            max|γ|/√ε
///
/// MLPs, norms and the head act on each token by itself: their constants are
/// the same in both norms. Max-min has the slope 1: it permutes the features of
/// a token, which way depends on the token, and is continuous.
///
/// Dot-product attention with no norm ahead has a bound only if `radius` says
/// how long the tokens are that enter layer 0. From there on they are followed:
/// attention makes of tokens a mean of tokens times W_V W_O, so that |f(x)| ≤
/// R‖W_V W_O‖ + |f(0)|; position heads make at most R times their constant in
/// the token norm; the MLP at most L_mlp R + |mlp(0)|; and |carry x + share
/// f(x)| ≤ carry R + share sup|f|. By centred slopes the constant of the whole
/// sub-layer takes the place of carry + share L_mlp.
///
/// Throws std::invalid_argument for weights of attention that do not sum to
/// one, q/k-norm, rotary positions of other kinds than dot-product, gated MLPs,
/// and layers of other forms.
StackConstant stack_constant(const Stack& stack,
                             const StackConstantOptions& options = {});

}  // namespace lipscope
