#pragma once

#include "lipscope/model/activation.h"
#include "lipscope/theory/head_norms.h"
#include "lipscope/theory/magnitude.h"

/// What stands around attention in a transformer, from above, and how constants
/// compose: on plain numbers, carried with their log10.
namespace lipscope {

/// LayerNorm or RMSNorm everywhere, 2-norm: max|γ|/√ε. [J =
/// diag(γ)(σ²+ε)^{-1/2} (I − 11ᵀ/D − zzᵀ/(D(σ²+ε))), z = x − mean: a
/// contraction inside.]
Magnitude norm_layer_everywhere(const NormWeights& norm);

/// The same at tokens whose variance (mean square for RMSNorm) is at least
/// `variance`: max|γ|/√(variance + ε).
Magnitude norm_layer_local(const NormWeights& norm, double variance);

/// LayerNorm everywhere in the inf-norm: (2 + 3^{-3/2}√(D−1)) max|γ|/√ε. The
/// value 2(D−1)/D·max|γ|/√ε sometimes quoted is no upper bound for large D.
///
/// Proof. With s² = σ² + ε, t = z/s and r = σ²/s², row i of the Jacobian is
/// (γ_i/s)(e_i − 1/D − t_it/D), where |t|² = Dr. Its entry i is in [0, 1 −
/// 1/D]: Σt = 0 gives t_i² ≤ (D−1)r. The others are at most 1/D + |t_it_j|/D,
/// and Σ_{j≠i}|t_it_j|/D ≤ |t_i|√(D−1)(Dr − t_i²)^{1/2}/D ≤ √(D−1) r/2. As 1/s
/// = √(1−r)/√ε, and r√(1−r) ≤ 2·3^{-3/2}, the row sums to at most (2 + √(D−1)
/// 3^{-3/2})|γ_i|/√ε.
Magnitude layer_norm_everywhere_inf(const NormWeights& norm);

/// ‖W₁‖ L_act ‖W₂‖.
Magnitude mlp_bound(double first, double second, Activation activation);

/// Of x + g(x): 1 + Lip(g).
Magnitude residual_bound(Magnitude inner);

/// A whole block from the constants of its parts, each over where it is used.
struct BlockParts {
  Magnitude attention, attention_norm, mlp, mlp_norm;
};
/// x + attn(norm x), then x + mlp(norm x): (1 + L_attn L_n1)(1 + L_mlp L_n2).
Magnitude pre_norm_block(const BlockParts& parts);
/// norm(x + attn x), then norm(x + mlp x): L_n1(1 + L_attn) L_n2(1 + L_mlp).
Magnitude post_norm_block(const BlockParts& parts);

}  // namespace lipscope
