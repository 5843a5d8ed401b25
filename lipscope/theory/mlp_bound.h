#pragma once

#include "lipscope/model/mlp.h"
#include "lipscope/operators/norm.h"
#include "lipscope/theory/magnitude.h"

/// MLPs from above.
namespace lipscope {

/// ‖W₁‖ L_act ‖W₂‖.
Magnitude mlp_bound(double first, double second, Activation activation);

/// Lip(y = act(x W_up + b) W_down + b') of each token by itself, and so of a
/// sequence, from above: ‖W_up‖ L_act ‖W_down‖, in the 2-norm or the inf-norm
/// (for tokens, which are rows, the largest absolute column sums). A gated MLP
/// is quadratic in its input and has no such constant; it is refused.
Magnitude mlp_lipschitz(const MlpWeights& weights, Norm norm);

/// What the bound on an MLP takes of its weights, from above: made once.
struct MlpNorms {
  double up = 0.0, gate = 0.0, down = 0.0;    ///< ‖W‖₂
  double up_column = 0.0, gate_column = 0.0;  ///< max_j |w_j|
  double up_bias = 0.0, gate_bias = 0.0;      ///< max_j |b_j|
  bool gated = false;
  Activation activation = Activation::gelu;
};
MlpNorms mlp_norms(const MlpWeights& weights);

/// An MLP over tokens of norm at most R, in the 2-norm:
///
///   plain  ‖W_up‖ L_act ‖W_down‖, whatever R
///   gated  (‖W_gate‖ L_act max|u| + ‖W_up‖ max|g|) ‖W_down‖
///
/// Gated, with g = xW_gate + b_gate and u = xW_up + b_up, the Jacobian is
/// (W_gate diag(act'(g)∘u) + W_up diag(act(g))) W_down; |act(t)| ≤ |t| for all
/// activations here, and |u_j| ≤ R|w_j| + |b_j|.
Magnitude mlp_above(const MlpNorms& norms, double radius);

}  // namespace lipscope
