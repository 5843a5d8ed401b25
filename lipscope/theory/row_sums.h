#pragma once

#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/head_norms.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/layer_heads.h"

/// Attention in the largest token norm, max_i |x_i|: each row of P sums to 1,
/// so that no power of n is left. Any n; any mask, for tied L2 attention
/// without padding. Nothing here asks whether a token sees itself but Kim21's
/// lemma.
namespace lipscope {

/// One dot-product head over a set of tokens, at ‖V‖ = 1:
///
///   Lip_token ≤ ‖V‖ (1 + a + g)
///
/// by the line for dy_i in column_sums.h, since Σ_jP_ij|x_j − m_i| ≤ ρ.
extern const Statement row_sums_statement;
Magnitude row_sums(const ScoreSizes& sizes);

/// Tied L2 attention, everywhere, with p of kim21.h:
///
///   Lip_token ≤ 1/√k (4p + 1) min( (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2} ‖W_O‖,
///                                  Σ_h ‖W_Q^h‖² ‖W_V^h W_O^h‖ ).
///
/// Proof. Row i of the three parts in l2_diagonal_apart.h, one head:
/// |dy_i Cov_i(y)| ≤ p|dy_i| twice, |Σ_jP_ij dy_j| ≤ max_j|dy_j|, and the last
/// is at most 2p max_j|dy_j|; |dy_j| ≤ ‖W_Q‖k^{-1/4}|dx_j|. Heads stand side by
/// side in each token ahead of W_O, which is the first form; or their outputs
/// are added, the second.
extern const Statement l2_row_sums_statement;
Magnitude l2_row_sums(double p, Index k);  ///< at weight factor 1
/// The minimum in it.
Magnitude l2_row_sums_weights(const LayerHeads& layer,
                              const std::vector<L2HeadNorms>& norms);

}  // namespace lipscope
