#pragma once

#include <optional>
#include <vector>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/layer_norm.h"
#include "lipscope/theory/norm_layer_bound.h"

namespace lipscope {

/// Where the tokens are.
struct TokenSet {
  double radius = 0.0;  ///< |x| ≤ R
  std::optional<NormWeights>
      norm;  ///< and what comes out of this, if it is there
};

/// What all bounds on a dot-product head over a set of tokens are made of.
/// With w_ij the gradient of s_ij by x_j, for one row i:
///
///   diagonal ≥ ‖dx_i ↦ Σ_j P_ij ds_ij (x_j − m_i)‖   (a = ‖A‖R²)
///   pull     ≥ |w_ij| ρ,  ρ² the P-variance of tokens (a_b = ‖A‖R² + |c|R)
///   spread   ≥ half of how far the logits of one row lie apart     (a_b)
///
/// Over the ball, without RoPE: s_ij = (x_iA + c)x_jᵀ, A = W_QW_Kᵀ/√k,
/// c = b_QW_Kᵀ/√k, up to what is constant along a row (b_K with it); w_i =
/// x_iA + c; the first is ‖A Cov_i‖. A variance over a ball is at most R².
///
/// With RoPE s_ij = (x_iW_Q + b_Q)R_ij(x_jW_K + b_K)ᵀ/√k and b_K does act.
/// Rotations keep lengths, so
///
///   spread   (‖W_Q‖R + |b_Q|)(‖W_K‖R + |b_K|)/√k
///   pull     (‖W_Q‖R + |b_Q|)‖W_K‖R/√k
///   diagonal ‖W_Q‖(‖W_K‖R + |b_K|)R/√k, since Σ_j P_ij|x_j − m_i| ≤ R.
///
/// After a norm layer x = zΓ + β, |z| ≤ √D, z = zΠ (Π takes out the mean):
///
///   s_ij = z_iΠΓAΓΠz_jᵀ + (βA + c)ΓΠz_jᵀ + what is constant along the row,
///   spread   D‖ΠΓAΓΠ‖ + √D|(βA + c)ΓΠ|
///   pull     (√D‖ΠΓA‖ + |βA + c|)ρ,  ρ = √D max|γ|: β moves every token alike
///   diagonal D‖AΓΠ‖ max|γ|, since A Cov_i = AΓΠ Cov(z)ΠΓ
///
/// (with RoPE: the lengths √D‖ΠΓW_Q‖ + |βW_Q + b_Q| of q, and so of k, in place
/// of ‖W_Q‖R + |b_Q|). Both hold; the smaller of each is taken. The set {zΓ +
/// β} is convex: a bound on the Jacobian over it is a Lipschitz constant.
struct ScoreSizes {
  double diagonal = 0.0, pull = 0.0, spread = 0.0;
};

struct HeadNorms {
  double score = 0.0;       ///< ‖A‖₂
  double score_bias = 0.0;  ///< |c|, and
  double value = 0.0;       ///< ‖W_V‖₂
  double projected = 0.0;  ///< ‖W_V W_O,h‖₂; as `value` without an output
  ScoreSizes sizes;
};

HeadNorms head_norms(const HeadWeights& head, const TokenSet& tokens,
                     bool rope);

/// The sizes over the ball of radius R alone, without RoPE, from norms that are
/// known: ‖A‖ and |c|.
ScoreSizes sizes_over_ball(const HeadNorms& norms, double radius);

}  // namespace lipscope
