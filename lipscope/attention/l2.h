#pragma once

#include "lipscope/attention/head.h"

/// L2 attention [Kim21] as a dot-product head. Softmax ignores what is constant
/// along a row, and with it −|q_i|², so
///
///   −|q_i − k_j|²/√k  ≡  ⟨(2q_i/√k, 1), (k_j, −|k_j|²/√k)⟩:
///
/// one more feature makes distances inner products, and every kernel serves
/// both kinds.
namespace lipscope {

/// The features that a dot-product head compares, from the projections q = XW_Q
/// and k = XW_K. Both are first moved by the mean of k: distances do not feel
/// it, and the squares that cancel in the scores become small.
template <class Real>
HeadFeatures<Real> l2_features(const HeadFeatures<Real>& raw);

/// The tangent of l2_features at `at` (its own result), when the projections
/// move by d.
template <class Real>
HeadFeatures<Real> l2_features_tangent(const HeadFeatures<Real>& at,
                                       const HeadFeatures<Real>& d);

/// Its transpose: cotangents of the features back to the projections.
template <class Real>
HeadFeatures<Real> l2_features_cotangent(const HeadFeatures<Real>& at,
                                         const HeadFeatures<Real>& g);

/// The features are not linear in k: the gradient by k of ⟨gd,
/// features_tangent(d)⟩, which is −(2/√k) gd_last dk, row by row.
template <class Real>
MatrixOf<Real> l2_features_bend(const HeadFeatures<Real>& d,
                                const HeadFeatures<Real>& gd);

/// The value weights that tied L2 attention applies to the tokens, A_h W_V for
/// each of the H heads [d×H·w], A_h = W_Q W_Qᵀ/√k. Without the factor A_h the
/// map is not Lipschitz: along null(W_Q) tokens grow and the weights do not
/// notice.
Matrix l2_value(const AttentionWeights& weights);

/// p = φ⁻¹(n − 1), φ(x) = x e^{x+1}; that is W₀((n−1)/e), from above. The key
/// lemma of [Kim21] for n tokens: Σ_j P_ij|y_i − y_j|² ≤ p, with y = x W_Q
/// scaled such that the scores are −|y_i − y_j|².
double kim21_phi_inverse(Index n);

}  // namespace lipscope
