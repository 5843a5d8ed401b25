#pragma once

#include "lipscope/attention/mask.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// What the bound on a sigmoid head takes of its weights, all from above.
struct SigmoidNorms {
  double score = 0.0;       ///< ‖A‖, A = W_QW_Kᵀ/√k
  double query_bias = 0.0;  ///< |b_QW_Kᵀ|/√k
  double key_bias = 0.0;    ///< |b_KW_Qᵀ|/√k
  double both = 0.0;        ///< |b_Q·b_K|/√k
  double value = 0.0;       ///< ‖V‖
  double value_bias =
      0.0;  ///< |b_V| where V is W_V, |b_VW_O| where it is W_VW_O
};

/// Sigmoid attention Σ_j σ(s_ij − log n) v_j over sequences of n tokens in the
/// ball of radius R, any mask [Ramapuram24, re-derived with biases]:
///
///   Lip₂ ≤ n ( ‖V‖ sup σ + (2‖A‖R + |b_QW_Kᵀ| + |b_KW_Qᵀ|)
///              · (‖V‖R + |b_V|) sup σ' ),
///
/// suprema over logits up to ‖A‖R² + (|b_QW_Kᵀ| + |b_KW_Qᵀ|)R + |b_Q·b_K|, all
/// divided by √k. Without biases: n‖V‖(sup σ + 2‖A‖R² sup σ').
///
/// Proof. dy_i = Σ_j σ_ij dx_jV + Σ_j σ'_ij (dx_i·(Ax_jᵀ + b_KW_Qᵀ)ᵀ) v_j
/// + Σ_j σ'_ij (dx_j·(x_iA + b_QW_Kᵀ)) v_j, and |v_j| ≤ ‖V‖R + |b_V|. The n×n
/// matrices of the norms of the J_ij have norm at most n times their largest
/// entry; the middle term changes each token by itself, with n summands a row.
///
/// Under a mask n, outside of log n, is the largest number of tokens that one
/// sees or that see one: a matrix ≥ 0 with r numbers in a row and c in a column
/// has norm at most √(rc) times the largest.
extern const Statement ramapuram24_ball_statement;
Magnitude ramapuram24_ball(const SigmoidNorms& norms, double R, Index n,
                           const Mask& mask = Mask::none);

}  // namespace lipscope
