#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// g₁(p) = p₍₁₎(1 − p₍₁₎ + p₍₂₎) for a row of attention weights with largest
/// entries p₍₁₎ ≥ p₍₂₎ (0 where there is only one): at most ½.
double yudin25_g1(const Vector& p);

/// One dot-product head without a query bias at the sequence X, any mask, at
/// ‖V‖ = 1 [Yudin25]:
///
///   ‖J‖₂ ≤ ‖V‖ ( ‖P‖₂ + 2‖X‖₂²‖A‖₂ max_i g₁(P_i) )
///
/// Any rows that sum to one, 0 where a token is hidden: with M_i = diag(P_i) −
/// P_iᵀP_i, ‖M_i‖ ≤ g₁(P_i), the keys move y_i by ds_iᵀM_iX with ds_i =
/// dX(x_iA)ᵀ, and Σ_i|dX Aᵀx_iᵀ|² = ‖dX AᵀXᵀ‖_F² ≤ ‖dX‖_F²‖A‖²‖X‖²; its query
/// moves y_i by dx_iAXᵀM_iX.
extern const Statement yudin25_local_statement;
Magnitude yudin25_local(double norm_p, double norm_x, double norm_a,
                        double largest_g1);

}  // namespace lipscope
