#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// Tied L2 attention, everywhere, any mask without padding, with the lemma of
/// [Kim21] (p and n under a window: see kim21.h), but with the part of the
/// Jacobian on the diagonal apart, which needs no √n:
///
///   Lip₂ ≤ 1/√k (2p + (1 + 2p)√n) (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2} ‖W_O‖.
///
/// Proof, with y = xW_Q k^{-1/4}, so that A = W_QW_Qᵀ/√k and s_ij =
/// −|y_i−y_j|²: J_ij = [2δ_ij A Cov_i + P_ij(I + 2A(x_i−x_j)ᵀ(x_j−m_i))]A. By
/// [Kim21] Σ_jP_ij|y_i−y_j|² ≤ p; hence ‖Cov_i(y)‖ ≤ p and ‖A Cov_i A‖ ≤
/// ‖W_Q‖²p/√k. In the rest, |Σ_jP_ij dy_j| costs ‖P‖ ≤ √n, and 2Σ_jP_ij⟨dy_j,
/// y_i−y_j⟩(y_j−ȳ_i) is at most 2 max_j|dy_j|
/// (Σ_jP_ij|y_i−y_j|²)^{1/2}(Σ_jP_ij|y_j−ȳ_i|²)^{1/2} ≤ 2p|dY| in each of n
/// rows. (Where at most n tokens see one: ‖P‖² is at most its largest column
/// sum, and |dY| is that of the tokens that the row sees.) Both ends of J_ij
/// carry ‖W_Q‖k^{-1/4}.
extern const Statement l2_diagonal_apart_statement;
Magnitude l2_diagonal_apart(double p, Index n,
                            Index k);  ///< at weight factor 1

}  // namespace lipscope
