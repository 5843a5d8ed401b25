#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"

/// The bounds of [Castin24] on one dot-product head without a query bias, over
/// tokens of norm at most R; ‖A‖ and ‖V‖ from above. With a bias both are
/// false.
namespace lipscope {

/// Over sequences of n tokens, any mask:
///
///   Lip₂ ≤ √3 ‖V‖ (‖A‖²R⁴(4n + 1) + n)^{1/2}
///
/// (Any rows that sum to one: the three parts of dy_i in column_sums.h are at
/// most ‖A‖R², √n and √n‖A‖R² times ‖V‖, the variance of tokens of the ball
/// being at most R² and ‖P‖ at most √n.)
extern const Statement castin24_ball_statement;
Magnitude castin24_ball(double norm_a, double R, Index n);  ///< at ‖V‖ = 1

/// Over measures, in W₂, without a mask; n does not enter:
///
///   Lip ≤ ‖V‖ (1 + 3‖A‖R²) e^{2‖A‖R²}
extern const Statement castin24_meanfield_statement;
Magnitude castin24_meanfield(double norm_a, double R);  ///< at ‖V‖ = 1

/// At the sequence X, any mask:
///
///   ‖J‖₂ ≤ √3 ‖V‖ (R_A² r² (n + 1) + n)^{1/2},
///   R_A = max_i max(|x_i A|, |A x_iᵀ|), r = max_ij |x_i − x_j|
///
/// The argument of castin24_ball with what is seen of the tokens in place of R:
/// the three parts of J have, for any rows that sum to one, norms at most R_A r
/// (‖A Cov_i‖ ≤ Σ_jP_ij|A x_jᵀ||x_j−m_i|), √n and √n R_A r, and (a+b+c)² ≤
/// 3(a²+b²+c²). With |x_iA| alone it is false: tokens with x_iA = 0 have any ‖A
/// Cov_i‖.
extern const Statement castin24_data_statement;
Magnitude castin24_data(double longest_pull, double diameter,
                        Index n);  ///< at ‖V‖ = 1

}  // namespace lipscope
