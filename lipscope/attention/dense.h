#pragma once

#include "lipscope/attention/multi_head.h"

namespace lipscope {

/// The Jacobian of attention as a dense matrix [n·e×n·d], block by block from
/// its closed form and from nothing else in this folder: the oracle that the
/// matrix-free one is compared with. For small cases: O(n² d²) memory.
///
/// A change dx_j of token j moves output i by dx_j B_ij. With
/// m_i = Σ_j P_ij x_j and Cov_i = Σ_j P_ij x_jᵀx_j − m_iᵀm_i, for one head:
///
///   dot   B_ij = [δ_ij A Cov_i + P_ij (I + (x_iA + c)ᵀ(x_j − m_i))] V,
///         A = W_Q W_Kᵀ/√k, c = b_Q W_Kᵀ/√k
///   l2    B_ij = [2δ_ij A Cov_i + P_ij (I + 2A(x_i − x_j)ᵀ(x_j − m_i))] A V,
///         A = W_Q W_Qᵀ/√k [Kim21]
///   l2-untied, with r_ij = x_iW_Q + b_Q − x_jW_K − b_K and D = 2/√k:
///         B_ij = [D δ_ij W_Q W_Kᵀ Cov_i
///                 + P_ij (I + D W_K r_ijᵀ (x_j − m_i))] V
///
///   sigmoid, cosine: from the gradients of the scores, with q = xW_Q + b_Q, …
///         B_ij = P'_ij (∂s_ij/∂x_j)ᵀ(v_j − c_i) + P_ij ∂v_j/∂x_j
///                + δ_ij Σ_l P'_il (∂s_il/∂x_i)ᵀ(v_l − c_i),
///         sigmoid: P' = P(1 − P), c_i = 0; cosine: P' = P, c_i = Σ_j P_ij v_j,
///         and each N(z) = z/√(|z|² + ε) has ∂N/∂z = (I − NᵀN)/√(|z|² + ε)
///
///   rotary positions: the same, with W_Q and b_Q of token i and W_K and b_K of
///         token j followed by the rotations of their places; dot and
///         l2-untied have P' = P and c_i as cosine has
///
/// V = W_V W_O,h projected, W_V in the head's own columns otherwise; heads add
/// up. One sequence only.
Matrix dense_jacobian(const AttentionWeights& weights,
                      const AttentionOptions& options, const Matrix& x);

}  // namespace lipscope
