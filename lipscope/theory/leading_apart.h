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
/// within e/2 = (ε + γ)S + slope_rounding of the exact J, and a row of W errs
/// by at most e(2‖J‖ + e), where ‖J‖² ≤ ‖G‖_F.) With V₁ = (VVᵀ)^{-1/2}V exactly
/// orthonormal ‖V₁ − V‖_F ≤ η, and for η ≤ 1/4 each of ‖V₁G‖_F, ‖V₁GV₁ᵀ‖_F,
/// ‖V₁GV₁ᵀ‖₂ and ‖B‖_F differs from what is made of W by at most 4(η(‖G‖_F +
/// ‖W‖_F) + δ).
///
/// F is the triangular factor L of W_OW_Oᵀ. Where neither p_i nor U depends on
/// the token that is looked at, as without rotary positions and q/k-norm,
/// T_ii'L is made for i ≠ i' from pieces that are multiplied by L once
/// (gram_by_pieces.h), in f32 but for what is made once; what that errs by is
/// added up with the sizes of the pieces. Otherwise, for i = i', and where that
/// account is more than 0.3 % of the sum (pieces that cancel, numbers far
/// apart), T_ii' is made in f64, and the two products with L are of f32
/// (gram_triangle.h):
///
///   ‖G‖_F ≤ (Σ‖fl‖_F²)^{1/2} + κ(Σ‖T‖_F²)^{1/2} + γ√n S²
///
/// with the account of the pieces in place of the middle term.
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
