#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/head_norms.h"

/// Attention whose scores have a number for each distance (RelativeBias), under
/// a causal mask: P_ij ∝ e^{s_ij + b_{i−j}}. `behind` is b_0, …, b_{n−1}.
///
/// b does not depend on the tokens, so that the Jacobian has the form that it
/// has without b, at another P. What asks of P only that rows sum to one still
/// holds: row_sums and castin24_ball. What asks how large an entry of P can be
/// does not (column_sums, Hardy's inequality, Kim21's lemma, l2_kernel). Here
/// is what takes its place; with b = 0 it is what was there.
namespace lipscope {

/// One dot-product head over a set of tokens, at ‖V‖ = 1, in the notation of
/// column_sums.h:
///
///   Lip₂ ≤ ‖V‖ ( a + (1 + g)√S ),
///   S = Σ_{t=0}^{n−1} 1/(1 + e^{−2s} Σ_{u<t} e^{b_u − b_t})
///
/// Proof. That of column_sums, with S for the largest column sum. Token i sees
/// the distances 0, …, t, … up to its beginning, where i − j = t, and scores
/// s_il of a row lie within 2s, so that
///
///   1/P_ij = Σ_l e^{s_il − s_ij + b_{i−l} − b_t} ≥ 1 + e^{−2s} Σ_{u<t} e^{b_u
///   − b_t}.
///
/// A column has at most one entry for each t < n. A head that looks at one
/// distance, b_t far above all others, has S near 1 for t = 0 and near 1 + t
/// otherwise: the first t tokens have nothing there and look at something else.
extern const Statement relative_column_sums_statement;
Magnitude relative_column_sums(const ScoreSizes& sizes, const Vector& behind);

/// The lemma of [Kim21] with masses. In tied L2 attention s_ij = −|y_i − y_j|²,
/// a token's own score is 0, and with m_t = e^{b_t − b_0} for the others
///
///   Σ_j P_ij|y_i − y_j|² ≤ p,   p e^{p+1} = M = Σ_{t=1}^{n−1} m_t.
///
/// Proof. e^{−r}(r − p) is largest at r = p + 1, where it is e^{−(p+1)}. So for
/// all r_t ≥ 0: Σ m_t e^{−r_t}(r_t − p) ≤ M e^{−(p+1)} = p, which is Σ m_t
/// e^{−r_t} r_t ≤ p(1 + Σ m_t e^{−r_t}). Equality where all r_t = p + 1. Fewer
/// tokens have a smaller M.
///
/// p is about ln M: a token that looks away from itself by b costs about b.
double relative_phi_inverse(const Vector& behind);

/// Tied L2 attention, one head, everywhere, at k^{-1/2}‖W_Q‖‖W_QᵀW_V W_O‖ = 1
/// (l2_path_factor):
///
///   Lip_token ≤ 4p + 1
///   Lip₂      ≤ 2p + √C + 2√(pD),
///   C = 1 + Σ_{t≥1} m_t/(1 + m_t),  D = Σ_{t≥1} d_t,  d_t e^{d_t+1} = m_t
///
/// Proof. l2_row_sums and l2_kernel ask of P the lemma, and in the 2-norm the
/// largest column sums C of P and D of P_ij|y_i − y_j|². For i − j = t ≥ 1 the
/// token itself is in the row: P_ij ≤ m_t e^{−r}/(1 + m_t e^{−r}), r = |y_i −
/// y_j|², which is at most m_t/(1 + m_t), and P_ij r ≤ d_t by the lemma for one
/// mass. W_Q stands ahead of the map y ↦ g(y) of l2_kernel.h, and W_QᵀW_V W_O
/// behind it.
extern const Statement relative_l2_token_statement, relative_l2_two_statement;
Magnitude relative_l2_token(const Vector& behind);
Magnitude relative_l2_two(const Vector& behind);

}  // namespace lipscope
