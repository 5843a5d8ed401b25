#pragma once

#include "lipscope/operators/map.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/gram_cost.h"
#include "lipscope/theory/layer_at.h"

/// A bound for layers from the size of the Gram matrix of J, with the leading
/// directions split off.
///
/// G = J Jᵀ has far more rows than can be factored, but its Frobenius norm is a
/// sum over pairs of tokens (gram_parts.h), of which none has to be kept:
///
///   ‖J‖⁴ = ‖G‖₂² ≤ ‖G‖_F² = Σ_ii' ‖FᵀT_ii'F‖_F² = Σ_a σ_a⁴.
///
/// For layers of real models this is 1.4 to 2.2 times ‖J‖. A few directions
/// make most of the sum. With the rows of V [m×N] orthonormal, and V̂ the rest,
///
///   G ≅ (A Bᵀ; B C),  A = VGVᵀ,   ‖B‖_F² = ‖VG‖_F² − ‖A‖_F²,
///                     ‖C‖_F² = ‖G‖_F² − 2‖VG‖_F² + ‖A‖_F²,
///
///   ‖G‖₂ ≤ ‖(a b; b c)‖₂   for a ≥ ‖A‖₂, b ≥ ‖B‖_F, c ≥ ‖C‖_F,
///
/// for any V: nothing rests on what it is. It is a Krylov space, m steps of
/// Lanczos iteration with the Jacobian of the attention in f64; then B has one
/// row that counts, and where c ≤ a the bound is near ‖J‖ itself. The steps end
/// where more of them do not help, at most_leading at the latest.
///
/// Rounding. V is orthonormal up to η = ‖VVᵀ − I‖_F, and W stands for VG up to
/// δ in the Frobenius norm. (Products with the Jacobian and with G are each
/// within e/2 = (ε + γ)S + slope_rounding + applied_slope_rounding of the exact
/// J, and a row of W errs by at most e(2‖J‖ + e), where ‖J‖² ≤ ‖G‖_F.) With V₁
/// = (VVᵀ)^{-1/2}V exactly orthonormal ‖V₁ − V‖_F ≤ η, and for η ≤ 1/4 each of
/// ‖V₁G‖_F, ‖V₁GV₁ᵀ‖_F, ‖V₁GV₁ᵀ‖₂ and ‖B‖_F differs from what is made of W by
/// at most 4(η(‖G‖_F + ‖W‖_F) + δ).
///
/// The parts T_ii' are made in f64; the two products with F, which cost most,
/// are of f32 (full precision, core/gemm.h): F is the triangular factor L of
/// W_OW_Oᵀ, of which only the triangle is multiplied. A product of sums of p
/// terms errs by at most γ'‖X‖_F‖Y‖_F in the Frobenius norm, γ' = 1.1(p +
/// 32)2⁻²⁴, so that
///
///   ‖fl(LᵀTL) − LᵀTL‖_F ≤ κ‖T‖_F,  κ = (γ' + 2⁻²³)|L|_F(2‖L‖ + γ'|L|_F) +
///                                      2⁻²³‖L‖²
///
/// and ‖G‖_F ≤ (Σ‖fl‖_F²)^{1/2} + κ(Σ‖T‖_F²)^{1/2} + γ√n S².
///
namespace lipscope {

/// How many directions are split off at most.
inline constexpr Index most_leading = 128;

/// Directions in the rows of v [m×N], and in those of w what a symmetric G ⪰ 0
/// makes of them.
struct Directions {
  Matrix v, w;
};

/// λ_max(G) from above, with these directions split off: `frobenius` ≥ ‖G‖_F,
/// and each row of w errs by at most row_error. +∞ for rows that are far from
/// orthonormal.
double split_off_above(const Directions& directions, double frobenius,
                       double row_error);

extern const Statement leading_apart_statement;

/// `heads`: the map of the heads side by side, without W_O, that the layer is
/// of. Where rounding leaves its scores unknown no directions are split off.
Magnitude leading_apart(const LayerParts& layer, const LayerAt& at,
                        const Map<double>& heads);

}  // namespace lipscope
