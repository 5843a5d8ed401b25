#pragma once

#include <vector>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/l2.h"
#include "lipscope/theory/bound.h"

/// The bounds of [Kim21] on tied L2 attention (W_K = W_Q, values X A_h W_V),
/// over all of R^{n×d}, under any mask that shows each token itself. p is
/// kim21_phi_inverse(n), see attention/l2.h.
///
/// The lemma Σ_jP_ij|y_i − y_j|² ≤ p is one of the n − 1 tokens that i sees
/// besides itself, whose own score is 0. Of n tokens of which each sees at most
/// m and at most m' see each, p is that of m; and √n below, n rows that each
/// answer to |dX|, is √m': row i answers to the tokens that it sees alone, and
/// Σ_i Σ_{j seen by i} |dx_j|² ≤ m'‖dX‖². With padding nothing of this holds:
/// see theory/unbounded.h.
namespace lipscope {

/// What the bounds take of the weights, all from above.
struct L2HeadNorms {
  double query = 0.0, value = 0.0;  ///< ‖W_Q^h‖₂, ‖W_V^h‖₂
  double projected = 0.0;  ///< ‖W_V^h W_O^h‖₂; as `value` without an output
  double query_inf = 0.0;  ///< ‖W_Q^h‖_inf ‖W_Q^hᵀ‖_inf
  double value_inf = 0.0;  ///< ‖W_V^hᵀ‖_inf
};
L2HeadNorms l2_head_norms(const HeadWeights& head);

/// Lip_inf ≤ (4p + 1/√k) ‖W_Oᵀ‖_inf max_h ‖W_Q^h‖_inf‖W_Q^hᵀ‖_inf
///           · max_h ‖W_V^hᵀ‖_inf
extern const Statement kim21_inf_statement;
Magnitude kim21_inf(Index n, Index k);  ///< at weight factor 1; n that of p
/// All of it but the first factor.
Magnitude kim21_inf_weight_factor(const std::vector<L2HeadNorms>& heads,
                                  double output_inf);

/// (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2}. The bound is often quoted with ‖W_Q^h‖² in
/// place of the fourth power; that form is false, the map is quadratic in W_Q.
Magnitude kim21_weight_factor(const std::vector<L2HeadNorms>& heads);

/// Lip₂ ≤ √n/√k (4p + 1) (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2} ‖W_O‖₂
extern const Statement kim21_two_statement;
Magnitude kim21_two(double p, Index n, Index k);  ///< at weight factor 1; √n

}  // namespace lipscope
