#pragma once

#include "lipscope/attention/relative_bias.h"
#include "lipscope/attention/weights.h"
#include "lipscope/core/matrix.h"

/// What each coordinate of tied L2 attention is divided by, where each has a
/// divisor of its own: a bound on the constant of that coordinate in the
/// inf-norm, as a function of the weights (proof in theory/l2_coordinates.h),
///
///   c_j(W) = Σ_h [ 4p_h N_h ‖E_h e_j‖₂ + ‖W_Q,h E_h e_j‖₁ ],
///   E_h = W_Q,hᵀ W_V,h W_O,h/√k,   N_h² = Σ_de |W_Q,h W_Q,hᵀ|_de,
///   p_h e^{p_h+1} = Σ_{t=1}^{n−1} e^{b_h,t − b_h,0}    (n − 1 without b).
///
/// F diag(1/c) is tied L2 attention with other columns of W_O, whose constant
/// in the inf-norm is at most 1: [Kim21] would divide these columns by the
/// largest of the c_j, after which the others are smaller than they need be.
/// Like model/contraction.h it is rounded to nearest.
namespace lipscope {

/// p of the scores b_0, b_1, … of one head; with g = ∂p/∂b beside it.
double distance_phi_inverse(const Vector& behind);
double distance_phi_inverse(const Vector& behind, Vector& g);

/// p of each head for n tokens.
Vector head_phi_inverses(const RelativeBias* bias, Index heads, Index n);

/// c [e] of W_Q [d×Hk] and E [Hk×e], whose heads stand side by side in the
/// columns of the one and on top of one another in the rows of the other; p
/// [H].
template <class Real>
Vector coordinate_contractions(const ConstView<Real>& query,
                               const ConstView<Real>& effective,
                               const Vector& p);

/// Adds Σ_j g_j ∂c_j to the gradients by W_Q and by E, which are taken for
/// independent, and gives that by p. Where a norm is 0, so is its gradient.
template <class Real>
Vector coordinate_contractions_backward(const ConstView<Real>& query,
                                        const ConstView<Real>& effective,
                                        const Vector& p, const Vector& g,
                                        View<Real> gquery,
                                        View<Real> geffective);

/// Divides column j of W_O by c_j/contraction, where c_j is not 0.
void divide_coordinates(AttentionWeights& weights, const Vector& p,
                        double contraction);

}  // namespace lipscope
