#pragma once

#include "lipscope/theory/bound.h"
#include "lipscope/theory/layer_at.h"

namespace lipscope {

/// One dot-product head at the sequence X, any mask, with w_i = x_iA + c and
/// Cov_i the covariance of the tokens under row i of P:
///
///   ‖J‖₂ ≤ ‖V‖ ( max_i‖A Cov_i‖ + ‖P‖₂
///                + max_i |w_i| √λ_max(Cov_i) · √(max_jΣ_iP_ij) )
///
/// Proof. The three parts of dy_i (column_sums.h) one by one; in the last,
/// |Σ_jP_ij t_j(x_j−m_i)|² ≤ λ_max(Cov_i) Σ_jP_ij t_j² with t_j = dx_j·w_i. Of
/// the rows of P it is used that they sum to one, over whatever they see.
extern const Statement covariances_statement;

/// Of head h, at ‖V‖ = 1. query_factor is an F with FFᵀ ⪰ W_QᵀW_Q of that head
/// [k×k] (factor_above).
Magnitude covariances(const LayerParts& layer, const Matrix& query_factor,
                      const LayerAt& at, Index h);

}  // namespace lipscope
