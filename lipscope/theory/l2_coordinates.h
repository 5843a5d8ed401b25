#pragma once

#include <vector>

#include "lipscope/attention/head_weights.h"
#include "lipscope/theory/bound.h"

/// Tied L2 attention in the inf-norm, everywhere, one coordinate of the output
/// at a time:
///
///   Lip_inf(F) ≤ max_j c_j,
///   c_j = k^{-1/2} Σ_h [ 4p_h N_h |U_h e_j|₂ + |W_Q,h U_h e_j|₁ ],
///   U_h = W_Q,hᵀ W_V,h W_O,h,   N_h² = Σ_de |(W_Q,h W_Q,hᵀ)_de|,
///
/// p_h that of [Kim21] (kim21.h), or with a number for each distance that of
/// relative_positions.h. Any mask without padding. Where [Kim21] multiplies
/// the inf-norms of W_Q, W_Qᵀ, W_V and W_O, and all heads have the largest of
/// them, this takes the products as they are, and heads that write different
/// coordinates do not add up.
///
/// Proof. With y = xW_Q k^{-1/4} the output of a head is Σ_j P_ij y_j · U
/// k^{-1/4}, and by l2_diagonal_apart.h, with z_j = y_j − ȳ_i,
///
///   dF_i e = k^{-1/4}[ Σ_j P_ij dy_j U e
///                      − 2 Σ_j P_ij ⟨dy_i − dy_j, y_i − y_j⟩ ⟨z_j, Ue⟩ ]
///
/// for a unit vector e of the output (2dy_i Cov_i is −2Σ_jP_ij⟨dy_i, y_i −
/// y_j⟩z_j, since Σ_jP_ijz_j = 0). The first part is k^{-1/2} Σ_jP_ij
/// ⟨dx_j, W_QUe⟩, at most k^{-1/2}|W_QUe|₁ max|dx|. In the second |dy_i − dy_j|
/// is at most 2k^{-1/4} max_j|dx_jW_Q|, and by Cauchy–Schwarz
///
///   Σ_j P_ij|y_i − y_j||⟨z_j, Ue⟩| ≤ (Σ_j P_ij|y_i − y_j|²)^{1/2}
///                                    (Σ_j P_ij|z_j|²)^{1/2} |Ue| ≤ p|Ue|,
///
/// the variance being at most the second moment about y_i. Last, |dxW_Q|² =
/// Σ_de dx_d dx_e (W_QW_Qᵀ)_de ≤ N² where |dx_d| ≤ 1. (Finding the largest such
/// |dxW_Q| is hard; N is at most (Σ_f |W_Q e_f|₁²)^{1/2}, and exact where the
/// features read different coordinates.)
namespace lipscope {

extern const Statement l2_coordinates_statement;

/// c_1, c_2, … from above; p of each head. Heads without an output write side
/// by side, U_h = W_Q,hᵀ W_V,h.
Vector l2_coordinates(const std::vector<HeadWeights>& heads,
                      const std::vector<double>& p);

}  // namespace lipscope
