#pragma once

#include <string>

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"

/// ‖J(X)‖₂ itself, proved by one Cholesky factorisation: for heads, and for
/// layers of few tokens.
///
/// Token j acts on token i by B_ij F [d×r] with
///
///   B_ij = [ P^h_ij U_j^h + P'^h_ij p_ij^hᵀ z_ij^h + δ_ij E_i^h ]_h   [d×H·w]
///
///   U_j^h = W_V^h S_j^{V,h},   p_ij^h = q_i^h (W_K^h S_j^{K,h})ᵀ,
///   z_ij^h = v_j^h − c_i^h,    E_i^h = W_Q^h S_i^{Q,h} C_i^h
///
/// in the notation of split_paths.h, heads side by side; F is W_O, or where W_O
/// is wider than high FFᵀ ⪰ W_OW_Oᵀ with r = H·w. (A head of BERT has r = 64
/// in place of 768.) The Gram matrix G of J has n·r rows and the parts
/// G_ii' = Fᵀ(Σ_j B_ijᵀB_i'j)F. No B_ij is formed: for heads h and g
///
///   Σ_j B_ij^hᵀB_i'j^g = (Σ_j P^h_ijP^g_i'j) W_V^hᵀW_V^g
///     + Σ_j ( P'^h_ijP'^g_i'j (p_ij^h·p_i'j^g) z_ij^h
///             + P^h_ijP'^g_i'j p_i'j^gU_j^h )ᵀ z_i'j^g
///     + Σ_j (P'^h_ij z_ij^h)ᵀ (P^g_i'j p_ij^hU_j^g)
///     + what has E, where j is i or i',
///
/// in all some 2n³(H·w)² operations, where the factorisation of t²I − G takes
/// (n·r)³/3.
///
/// Rounding. Let N_ij ≥ the Frobenius norms of the terms of B_ijF added up with
/// nothing cancelled, and S = ‖N‖. Every number of a term errs by a share of
/// its size: of P through the logits, which err by 8(d + 8)u(|x||W_Q| +
/// |b|)(|x||W_K| + |b|) (twice that is the share of P), of the others by at
/// most 10⁻⁹ of the size that they are given in N. With ε all these shares
/// together, those of LayerAt::allowance included, and with a share γ for the
/// sums of products in G (γS² in the 2-norm, since a part G_ii' errs by at most
/// γ Σ_j N_ijN_i'j),
///
///   ‖J‖ ≤ √(λ_max(G) + γS²) + (ε + γ)S + slope_rounding.
///
/// S itself is a bound; it is the answer for numbers so large or small that
/// products of them over- or underflow.
namespace lipscope {

/// What it takes at n tokens.
struct ExactCost {
  Index tokens = 0;
  double rows = 0.0;   ///< of G
  double flops = 0.0;  ///< of the factorisation, and of forming G
  double bytes = 0.0;

  /// Whether it is within the limits: 2 GB, and 10¹² operations, which is some
  /// twenty seconds on two cores. 12,288 rows are: 32 tokens of a layer of
  /// width 384, 16 of 768, 192 of a head of width 64.
  bool fits() const;
  /// "a matrix of 24576 rows: 4.9 GB and 4.9e+12 operations, of at most 2 GB
  /// and 1e+12"
  std::string text() const;
};
ExactCost exact_cost(const LayerParts& layer, Index n);

extern const Statement exact_norm_statement;
Magnitude exact_norm(const LayerParts& layer, const LayerAt& at);

/// The norms of the rows (J_i1, J_i2, …) of J, what all tokens do to token i,
/// from above, [n]: √λ_max(G_ii), with the same allowances but for
/// slope_rounding, which is of all of J. They are within a percent or so of
/// the norms. For n of any size: a row costs some 4(H·w)³ operations.
Vector row_norms_above(const LayerParts& layer, const LayerAt& at);

}  // namespace lipscope
