#pragma once

#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/head_norms.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/layer_heads.h"

/// The project's own bounds on one dot-product head over a set of tokens, with
/// query biases and RoPE, at ‖V‖ = 1. All rest on one line: with w_ij the
/// gradient of s_ij by x_j (x_iA + c without RoPE),
///
///   dy_i = [ D_i dx_i + Σ_j P_ij (dx_j + (dx_j·w_ij)(x_j − m_i)) ] V,
///
/// where |D_i dx_i| ≤ a|dx_i|; a, g, s below are `diagonal`, `pull` and
/// `spread` of ScoreSizes.
namespace lipscope {

/// Over sequences of n tokens, no mask:
///
///   Lip₂ ≤ ‖V‖ ( a + (1 + g) √(n/(1 + (n−1)e^{−2s})) )
///
/// Proof. The first part is block-diagonal. For the rest, Jensen and
/// Cauchy–Schwarz on each row:
///
///   |Σ_j P_ij (…)| ≤ (1 + max_j|w_ij| (Σ_jP_ij|x_j−m_i|²)^{1/2})
///                     · (Σ_jP_ij|dx_j|²)^{1/2}
///                  ≤ (1 + g)(Σ_jP_ij|dx_j|²)^{1/2}.
///
/// Summed over i, squared, that is at most (1 + g)² times the largest column
/// sum of P, and P_ij ≤ 1/(1 + (n−1)e^{−2s}): logits of a row lie within 2s.
extern const Statement own_ball_statement;
Magnitude own_ball(const ScoreSizes& sizes, Index n);

/// Over measures, in W₂, no mask:  Lip ≤ ‖V‖ ( a + (1 + g)e^s ).
///
/// Proof. As above with masses: P_ij = w_j e^{s_ij}/Σ_l w_l e^{s_il} ≤ w_j
/// e^{2s} and the weighted column sums Σ_i w_i P_ij/w_j are at most e^{2s}.
/// Fragments of a token that part move by the block-diagonal part alone.
extern const Statement own_meanfield_statement;
Magnitude own_meanfield(const ScoreSizes& sizes);

/// Over sequences of n tokens, causal mask:
///
///   Lip₂ ≤ ‖V‖ ( a + min( (1 + g)√S, 2(1 + 2g)e^{2s} ) ),
///   S = 1 + e^{2s} ln(1 + (n−1)e^{−2s})
///
/// Proof. Token i sees i tokens, so P_ij ≤ 1/(1 + (i−1)e^{−2s}), and a column
/// sums to at most Σ_i of that, at most 1 + ∫₀^{n−1} dt/(1 + te^{−2s}) = S. (S
/// ≤ n and S ≤ e^{2s}(1 + ln n).) The other arm: |x_j − m_i| ≤ 2ρ, so that row
/// i is at most (1 + 2g)e^{2s}·(1/i)Σ_{j≤i}|dx_j|, and averages over beginnings
/// have norm at most 2 (Hardy).
extern const Statement own_causal_statement;
Magnitude own_causal(const ScoreSizes& sizes, Index n);

/// Its second arm: over measures on positions and tokens, in the conditional
/// distance of order 2; n does not enter.
extern const Statement own_causal_meanfield_statement;
Magnitude own_causal_meanfield(const ScoreSizes& sizes);

/// In the largest token norm, any mask, any n:  Lip ≤ ‖V‖ (1 + a + g), since
/// Σ_jP_ij|x_j − m_i| ≤ ρ.
extern const Statement own_token_statement;
Magnitude own_token(const ScoreSizes& sizes);

/// The largest column sum of P over n tokens when the logits of each row lie
/// within 2s of one another: n/(1 + (n−1)e^{−2s}), or S under a causal mask.
Magnitude column_sum(double spread, Index n, Mask mask);

/// At the sequence X, any mask, with w_i = x_iA + c:
///
///   ‖J‖₂ ≤ ‖V‖ ( max_i‖A Cov_i‖ + ‖P‖₂
///                + max_i |w_i| √λ_max(Cov_i) · √(max_jΣ_iP_ij) )
///
/// Proof. The three parts of dy_i one by one; in the last,
/// |Σ_jP_ij t_j(x_j−m_i)|² ≤ λ_max(Cov_i) Σ_jP_ij t_j² with t_j = dx_j·w_i.
extern const Statement own_local_statement;

/// ‖J‖₂ is at most the norm of the n×n matrix of the norms of its blocks.
extern const Statement own_blocks_statement;

/// See split.h.
extern const Statement own_split_statement;

/// Tied L2 attention, everywhere, any mask, see kim21.h: the part of B_ij on
/// the diagonal needs no √n,
///
///   Lip₂ ≤ 1/√k (2p + (1 + 2p)√n) (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2} ‖W_O‖.
///
/// Proof, with y = xW_Q k^{-1/4}, so that A = W_QW_Qᵀ/√k and s_ij =
/// −|y_i−y_j|²: B_ij = [2δ_ij A Cov_i + P_ij(I + 2A(x_i−x_j)ᵀ(x_j−m_i))]A. By
/// [Kim21] Σ_jP_ij|y_i−y_j|² ≤ p; hence ‖Cov_i(y)‖ ≤ p and ‖A Cov_i A‖ ≤
/// ‖W_Q‖²p/√k. In the rest, |Σ_jP_ij dy_j| costs ‖P‖ ≤ √n, and 2Σ_jP_ij⟨dy_j,
/// y_i−y_j⟩(y_j−ȳ_i) is at most 2 max_j|dy_j|
/// (Σ_jP_ij|y_i−y_j|²)^{1/2}(Σ_jP_ij|y_j−ȳ_i|²)^{1/2} ≤ 2p|dY| in each of n
/// rows. Both ends of B_ij carry ‖W_Q‖k^{-1/4}.
extern const Statement own_l2_statement;
Magnitude own_l2(double p, Index n, Index k);  ///< at weight factor 1

/// The same in the largest token norm, where no √n is left:
///
///   Lip_token ≤ 1/√k (4p + 1) min( (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2} ‖W_O‖,
///                                  Σ_h ‖W_Q^h‖² ‖W_V^h W_O^h‖ ).
///
/// Proof. Row i of the three parts above, one head: |dy_i Cov_i(y)| ≤ p|dy_i|
/// twice, |Σ_jP_ij dy_j| ≤ max_j|dy_j|, and the last is at most 2p max_j|dy_j|;
/// |dy_j| ≤ ‖W_Q‖k^{-1/4}|dx_j|. Heads stand side by side in each token ahead
/// of W_O, which is the first form; or their outputs are added, the second.
extern const Statement own_l2_token_statement;
Magnitude own_l2_token(double p, Index k);  ///< at weight factor 1
/// The minimum in it.
Magnitude own_l2_token_weights(const LayerHeads& layer,
                               const std::vector<L2HeadNorms>& norms);

/// Scaled cosine attention, everywhere; with C the column sum at spread τ,
///
///   Lip₂ ≤ ν ε^{-1/2} ( τ‖W_Q‖ + √C (τ‖W_K‖ + ‖W_V‖) )   before W_O.
///
/// Proof. N(z) = z/√(|z|² + ε) is ε^{-1/2}-Lipschitz and |N| < 1: biases do not
/// matter. As for the ball: variances of v̂ are at most 1, |q̂|, |k̂| ≤ 1, and the
/// query moves row i by at most τ|dq̂_i|(ΣP|k̂|²)^{1/2}(ΣP|v̂−m|²)^{1/2}.
extern const Statement own_cosine_statement;
struct CosineNorms {
  double query = 0.0, key = 0.0, value = 0.0;
  double tau = 0.0, nu = 0.0, epsilon = 0.0;
};
Magnitude own_cosine(const CosineNorms& norms, Index n, Mask mask);

}  // namespace lipscope
