#pragma once

#include "lipscope/attention/layer_norm.h"
#include "lipscope/core/matrix.h"
#include "lipscope/theory/magnitude.h"

/// Norm layers from above: their constants, and how long a token can leave
/// them.
namespace lipscope {

/// How large a token can leave a norm layer, x = zΓ + β with |z| ≤ √D (and, of
/// LayerNorm, with mean zero): √D max|γ| + |β|.
double norm_layer_radius(const NormWeights& norm);

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

/// The variance (mean square for RMSNorm) of a token that a norm divides by,
/// rounded down; 0 at least.
double variance_below(const NormWeights& norm, const Vector& token);

/// A norm layer at these tokens: max_i max|γ|/√(σ_i² + ε), with the variance
/// (mean square for RMSNorm) rounded down.
Magnitude norm_layer_at(const NormWeights& norm, const Matrix& x);

}  // namespace lipscope
