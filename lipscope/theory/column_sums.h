#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/head_norms.h"

/// One dot-product head over a set of tokens, bounded by the column sums of its
/// attention weights P; with query biases and RoPE, at ‖V‖ = 1. All rests on
/// one line: with w_ij the gradient of s_ij by x_j (x_iA + c without RoPE),
///
///   dy_i = [ D_i dx_i + Σ_j P_ij (dx_j + (dx_j·w_ij)(x_j − m_i)) ] V,
///
/// where |D_i dx_i| ≤ a|dx_i|; a, g, s below are `diagonal`, `pull` and
/// `spread` of ScoreSizes.
namespace lipscope {

/// The largest column sum of P over n tokens when the logits of each row lie
/// within 2s of one another: n/(1 + (n−1)e^{−2s}), or S (below) under a causal
/// mask. Any other mask: with m_i the number of tokens that token i sees,
///
///   max_j Σ_{i sees j} 1/(1 + (m_i−1)e^{−2s}).
///
/// Proof. P_ij is e^{s_ij} over the sum of the m_i numbers e^{s_il} of the row,
/// each of which is at least e^{s_ij−2s}, and s_ij itself among them.
///
/// How it is summed. Far from both ends a window shows every token the same: of
/// a longer sequence only as many tokens are looked at as have all the columns
/// that differ, four windows and the padding. Without a window, padded, all m_i
/// are m = n − padding, and it is n/(1 + (m−1)e^{−2s}); causal, the first
/// column is the largest, S of m tokens and padding/(1 + (m−1)e^{−2s}).
Magnitude largest_column_sum(double spread, Index n, const Mask& mask);

/// Over sequences of n tokens, no mask:
///
///   Lip₂ ≤ ‖V‖ ( a + (1 + g) √(n/(1 + (n−1)e^{−2s})) )
///
/// Proof. The first part changes each token by itself. For the rest, Jensen and
/// Cauchy–Schwarz on each row:
///
///   |Σ_j P_ij (…)| ≤ (1 + max_j|w_ij| (Σ_jP_ij|x_j−m_i|²)^{1/2})
///                     · (Σ_jP_ij|dx_j|²)^{1/2}
///                  ≤ (1 + g)(Σ_jP_ij|dx_j|²)^{1/2}.
///
/// Summed over i, squared, that is at most (1 + g)² times the largest column
/// sum of P, and P_ij ≤ 1/(1 + (n−1)e^{−2s}): logits of a row lie within 2s.
extern const Statement column_sums_statement;
Magnitude column_sums(const ScoreSizes& sizes, Index n);

/// Over measures, in W₂, no mask:  Lip ≤ ‖V‖ ( a + (1 + g)e^s ).
///
/// Proof. As above with masses: P_ij = w_j e^{s_ij}/Σ_l w_l e^{s_il} ≤ w_j
/// e^{2s} and the weighted column sums Σ_i w_i P_ij/w_j are at most e^{2s}.
/// Fragments of a token that part move by the first part alone.
extern const Statement column_sums_meanfield_statement;
Magnitude column_sums_meanfield(const ScoreSizes& sizes);

/// Over sequences of n tokens, causal mask:
///
///   Lip₂ ≤ ‖V‖ ( a + min( (1 + g)√S, 2(1 + 2g)e^{2s} ) ),
///   S = 1 + e^{2s} ln(1 + (n−1)e^{−2s})
///
/// Proof. Token i sees i tokens, so P_ij ≤ 1/(1 + (i−1)e^{−2s}), and a column
/// sums to at most Σ_i of that, at most 1 + ∫₀^{n−1} dt/(1 + te^{−2s}) = S. (S
/// ≤ n and S ≤ e^{2s}(1 + ln n).) The second is hardy_meanfield.
extern const Statement column_sums_causal_statement;
Magnitude column_sums_causal(const ScoreSizes& sizes, Index n);

/// Over sequences of n tokens, any mask (offered with a window or padding):
///
///   Lip₂ ≤ ‖V‖ ( a + (1 + g) √(largest_column_sum) )
///
/// Proof. That of column_sums asks of a row of P no more than that it sums to
/// one over tokens of the set, and of D_i that row i's variance is that of such
/// tokens: whether i itself is among them does not matter.
extern const Statement column_sums_masked_statement;
Magnitude column_sums_masked(const ScoreSizes& sizes, Index n,
                             const Mask& mask);

/// Causal mask, over measures on positions and tokens, in the conditional
/// distance of order 2; n does not enter:
///
///   Lip ≤ ‖V‖ ( a + 2(1 + 2g)e^{2s} )
///
/// Proof. |x_j − m_i| ≤ 2ρ, so that row i is at most (1 + 2g)e^{2s} ·
/// (1/i)Σ_{j≤i}|dx_j|, and averages over beginnings have norm at most 2
/// (Hardy's inequality).
extern const Statement hardy_meanfield_statement;
Magnitude hardy_meanfield(const ScoreSizes& sizes);

}  // namespace lipscope
