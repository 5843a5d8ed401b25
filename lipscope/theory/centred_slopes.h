#pragma once

#include "lipscope/model/mlp.h"
#include "lipscope/theory/magnitude.h"

/// An MLP with the residual around it, x ↦ carry x + share act(xW₁ + b)W₂ + b',
/// by how far its slopes are from their centre. In the 2-norm and the token
/// norm, everywhere:
///
///   Lip ≤ ‖carry I + share ½ W₁W₂‖ + share (L_act − ½) ‖W₁‖‖W₂‖
///
/// with L_act = max act' (model/activation.h): 1 relu, 1.1290 gelu, 1.0999
/// silu. The other bound, carry + share L_act‖W₁‖‖W₂‖, is smaller where W₁W₂
/// does not turn x back.
///
/// Proof. All activations here but max-min, which is none of one feature, are
/// x g(x) with g(x) + g(−x) = 1: g = Φ, the logistic function, (1 + tanh of an
/// odd function)/2, or the step of relu. So act(x) − act(−x) = x, act'(x) +
/// act'(−x) = 1, and act' ≤ L_act everywhere makes act' ≥ 1 − L_act: slopes lie
/// within L_act − ½ of ½. For gelu that is [−0.1290, 1.1290]. The Jacobian of
/// a token is
///
///   carry I + share W₁DW₂ = carry I + share ½ W₁W₂ + share W₁(D − ½I)W₂
///
/// with D the diagonal of slopes and ‖D − ½I‖ ≤ L_act − ½. Tokens do not mix,
/// which makes the constant of a sequence that of a token, in both norms.
namespace lipscope {

/// Throws std::invalid_argument for gated MLPs and max-min, and for factors
/// below 0.
Magnitude centred_slopes(const MlpWeights& weights, double carry, double share);

}  // namespace lipscope
