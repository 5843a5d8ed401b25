#pragma once

#include <vector>

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"
#include "lipscope/theory/norms.h"

/// The split certificate of a multi-head layer at a sequence X: its Jacobian is
/// the sum of three paths,
///
///   value   dX ↦ Σ_h Σ_j P^h_ij dx_j W_V^h S_j^{V,h} W_O^h
///   key     dX ↦ Σ_h Σ_j P'^h_ij (dx_j·w_ij^h)(v_j^h − c_i^h)W_O^h
///   query   dX ↦ dx_i Σ_h W_Q^h S_i^{Q,h} C_i^h W_O^h,
///           C_i^h = Σ_j P'^h_ij k_jᵀ(v_j − c_i),
///
/// w_ij^h = q_i^h (W_K^h S_j^{K,h})ᵀ, q with its bias and 1/√k. The S are the
/// slopes of the features of a token (token_slopes.h): identities in
/// dot-product attention, rotations with rotary positions. For a softmax P' = P
/// and c_i = Σ_j P_ij v_j: dP_ij = P_ij(ds_ij − Σ_l P_il ds_il), times v_j and
/// summed over j, is Σ_j P_ij ds_ij(v_j − c_i). For a sigmoid P' = P(1 − P) and
/// c = 0. With ds_ij = dq_i·k_j + q_i·dk_j that makes the last two paths.
/// Distances are inner products with one more feature (attention/l2.h).
///
///   ‖J‖₂ ≤ value + ‖N‖, N_ij ≥ ‖key part ij‖ + δ_ij‖query part i‖,
///
/// where the part ij [d×e] of a path says how token j acts on token i. Value
/// and key parts are 0 where i does not see j; the query part of i is always
/// there.
namespace lipscope {

/// What the paths take of the weights alone. Without an output projection heads
/// stand side by side: W_O is the identity.
struct SplitWeights {
  Gram value;               ///< W_VᵀW_V [H·w×H·w]
  Gram output;              ///< W_OW_Oᵀ [H·w×H·w]
  Gram key, query;          ///< W_KᵀW_K, W_QᵀW_Q (with 1/k) [H·k×H·k]
  double norm_query = 0.0;  ///< ‖W_Q‖₂, with 1/√k, and of each head
  double norm_value = 0.0;  ///< ‖W_V‖₂
  double norm_output = 1.0;
  std::vector<double> head_query, head_output;
  /// ‖W_V^hᵀW_V^g‖, and if projected ‖W_O^hW_O^gᵀ‖, from above, [H×H]
  Matrix value_between_heads, output_between_heads;
  /// If projected: FFᵀ ⪰ W_OW_Oᵀ and ⪰ W_VᵀW_V, lower triangular.
  Matrix output_factor, value_factor;
};

SplitWeights split_weights(const LayerParts& layer);

/// The value path from above. In place of ‖W_V‖‖W_O‖ max_h‖P^h‖ the direction
/// that all heads share is taken out first: attention weights are averages, and
/// most of their norm is one pair of vectors u, z ≥ 0 (a token that all look
/// at).
///
/// With unit u, z and P^h = c_h u zᵀ + u r_hᵀ + s_h zᵀ + E_h (r_h ⊥ z, s_h ⊥ u,
/// E_h with u and z projected out), in bases that begin with u and z the path
/// is
///
///   [ Σ c_hV_h      Σ r_hᵀ⊗V_h ]          its norm is at most that of the
///   [ Σ s_h⊗V_h     Σ E_h⊗V_h  ] ,        2×2 matrix of the norms.
///
/// With ϱ_hg = r_h·r_g, ς_hg = s_h·s_g, and ∘ multiplying the part of heads h
/// and g by its entry hg, the first three are
///
///   ‖Σ c_hV_h‖² = λ(W_Oᵀ(ccᵀ∘W_VᵀW_V)W_O),  ‖Σ r_hᵀ⊗V_h‖² =
///   λ(W_Oᵀ(ϱ∘W_VᵀW_V)W_O),  ‖Σ s_h⊗V_h‖² = λ(W_V(ς∘W_OW_Oᵀ)W_Vᵀ)
///
/// (heads side by side, where W_O is the identity, have ‖s_h‖‖s_g‖ for ς and
/// W_VᵀW_V in the last). For the fourth, with any diagonal S > 0 constant on
/// heads, Σ E_h⊗V_h is W_V S, then S⁻¹(…)S⁻¹, then S W_O, so that
///
///   ‖Σ E_h⊗V_h‖² ≤ λ(S W_VᵀW_V S) λ(S W_OW_Oᵀ S),  S² = ‖E_h‖.
///
/// These take some 10(H·w)³ operations. Where that is more than five times a
/// measurement (few tokens of wide layers) three of the four are taken from
/// norms between heads instead: by the same S, which is |r_h|^{1/2} for
///
///   ‖Σ r_hᵀ⊗V_h‖² ≤ λ(S⁻¹(ϱ∘W_VᵀW_V)S⁻¹) λ(S W_OW_Oᵀ S)
///
/// and the mirror image. A matrix cut into parts is no larger than the matrix
/// of their norms: these λ are taken of H×H matrices ≥ 0, made of |ϱ| and the
/// norms of the two Gram matrices between heads. Each part is also at most
/// ‖W_V‖‖W_O‖ times the largest of the |r_h|, the |s_h| or the ‖E_h‖: W_V, then
/// the R_h side by side, then W_O. And below 24 tokens of such layers it is
/// ‖W_V‖‖W_O‖ max_h‖P^h‖ after all, which is never exceeded.
///
/// Values with slopes S_j of their own (cosine): with σ_j^h ≥ ‖S_j^{V,h}‖ the
/// path is W_V, then contractions S_j^{V,h}/σ_j^h of each token and head, then
/// the P^h diag(σ^h) side by side, then W_O. No direction is taken out, the
/// contractions being different for each token; the bounds on Σ E_h⊗V_h hold
/// with E_h = P^h diag(σ^h), since S, constant on heads, passes contractions.
double value_path_above(const LayerParts& layer, const SplitWeights& split,
                        const LayerAt& at);

/// The norms of all parts of the key path, from above, [n×n]; `means` has the
/// c_i.
///
/// A part of the key path is Σ_h w_ij^hᵀ P'^h_ij (v_j^h − c_i^h)W_O^h, of rank
/// at most H, and its norm² is λ(FᵀDGDF) with FFᵀ = Γ_ij, Γ_ij the H×H Gram
/// matrix of the w_ij^h, G that of the (v_j^h − c_i^h)W_O^h and D =
/// diag(P'^h_ij). For S ⪰ 0, λ(S) ≤ ‖S⁴‖_F^{1/4}. Where slopes are identities
/// Γ is the same for all j; otherwise it is made for every pair, of the rows
/// q_iS_j^{K}ᵀ and the Gram matrix of W_K. (q/k-norm over heads: rows y of one
/// head become y − (y·û)û ahead of W_K, see token_slopes.h.)
Matrix key_path_norms_above(const LayerParts& layer, const SplitWeights& split,
                            const LayerAt& at, const Matrix& means);

/// The norms of the parts of the query path, one for each token, from above.
///
/// Each S_i^{Q,h}C_i^h is cut into QᵀB with eight rows or four in Q and B, and
/// a rest; the former is the same problem as for keys in rank·H dimensions, the
/// rest is at most min(Σ_h‖W_Q^h‖‖rest_h‖‖W_O^h‖, ‖W_Q‖ max_h‖rest_h‖ ‖W_O‖).
/// With q/k-norm over heads y ↦ y − (y·û)û, a contraction, stands between W_Q
/// and these: rows of Q become y − (y·û)û, and ‖W_Q‖ is in place of the
/// ‖W_Q^h‖.
Vector query_path_norms_above(const LayerParts& layer,
                              const SplitWeights& split, const LayerAt& at);

/// ‖N‖: the key and query paths together, from above.
double score_paths_above(const LayerParts& layer, const SplitWeights& split,
                         const LayerAt& at);

/// The whole: value + ‖N‖.
extern const Statement split_paths_statement;
Magnitude split_paths(const LayerParts& layer, const SplitWeights& split,
                      const LayerAt& at);

}  // namespace lipscope
