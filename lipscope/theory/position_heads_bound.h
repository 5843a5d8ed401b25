#pragma once

#include "lipscope/attention/position_heads.h"
#include "lipscope/operators/norm.h"
#include "lipscope/theory/magnitude.h"

/// Position heads from above, over all inputs and at any length. With s_h =
/// Σ_t p_th,
///
///   Lip_token ≤ (Σ_h c_h² s_h² ‖V_h‖²)^{1/2}
///   Lip₂      ≤ ‖[c_1 s_1 V_1, …, c_H s_H V_H]‖₂, which is at most the same.
///
/// Proof. Token i of head h is c_h Σ_t p_th v_{i−t}, v_j = x_jV_h, and v_j = 0
/// for the empty tokens j < 0. Heads have coordinates of their own, so that the
/// squares of what they write add up.
///
/// Token norm: |Σ_t p_th v_{i−t}| ≤ Σ_t p_th|v_{i−t}| ≤ s_h‖V_h‖ max_j|x_j|,
/// since p ≥ 0.
///
/// 2-norm (Young's inequality, ‖p * v‖₂ ≤ ‖p‖₁‖v‖₂): the sequence i ↦ v_{i−t}
/// is v moved by t, with zeros ahead and its last tokens dropped, so that its
/// 2-norm is at most ‖v‖; by the triangle inequality ‖Σ_t p_th v_{·−t}‖ ≤
/// s_h‖xV_h‖. Then ‖y‖² ≤ Σ_h c_h²s_h²‖xV_h‖² = ‖x[c_hs_hV_h]_h‖², where the
/// matrix acts on each token by itself. And ‖[A_h]_h‖² = ‖Σ_hA_hA_hᵀ‖ ≤
/// Σ_h‖A_h‖².
///
/// Both are attained where each head looks at one distance: the token norm if
/// these differ, as each head then has a token of its own to be largest at.
namespace lipscope {

/// In the 2-norm or the token norm.
Magnitude position_heads_lipschitz(const PositionHeads& heads, Norm norm);

}  // namespace lipscope
