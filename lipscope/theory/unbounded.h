#pragma once

#include "lipscope/attention/weights.h"
#include "lipscope/theory/head_norms.h"

/// Inputs at which attention that is not Lipschitz reacts without bound: the
/// norm of the Jacobian grows like t² along a family of sequences.
namespace lipscope {

/// Whether softmax, sigmoid or untied L2 attention of this kind has such a
/// family: tied L2 and cosine attention have none, they are Lipschitz; but tied
/// L2 attention has one under a mask with padding (padded_l2_witness).
bool unbounded(Kind kind, const Mask& mask = Mask::none);

/// The sequence number t of the family, n ≥ 3 tokens, for a head with its
/// output (or without): t u, −t u, t u, …, and last one token x₀ (under a
/// causal mask it sees all) which they pull to both sides alike.
///
/// Dot-product and sigmoid [Kim21, with biases]: u unit, x₀ such that its query
/// sees no difference, q₀·(uW_K) = 0 (x₀ = 0 without a query bias). Row 0 of P
/// then does not depend on t, and
///
///   ‖J‖ ≥ ‖A Cov_0 V‖ − O(t),   Cov_0 ~ t² uᵀu:   grows as t²|Auᵀ||uV|.
///
/// Untied L2 [Kim21, one dimension; here for any]: tokens z ± t u with z's key
/// the query of x₀, and x₀ = τ r so far along the top direction r of W_Q − W_K
/// that its own key is 2t|uW_K| away from its query: it looks at the others
/// alone, half to each side. J grows as (2t²/√k)|W_Q(uW_K)ᵀ||uV|.
///
/// u is the best of few for the product of the two lengths: the direction that
/// A stretches most, the one that V does, and between.
///
/// Throws std::invalid_argument if n < 3, if t is not above 0, if the product
/// is 0 for all of them (queries, keys or values vanish), or if untied weights
/// are equal.
Matrix unbounded_witness(const HeadWeights& head, Kind kind, Index n, double t);

/// Whether the family grows under this mask: its last token must see two
/// tokens, and in untied L2 attention two besides itself.
bool witness_grows(Kind kind, const Mask& mask, Index n);

/// The sequence number t of the family for tied L2 attention and a mask under
/// which a padding token sees at least two others: that token at 0, and t u, −t
/// u, … in turn. It sees both sides from afar, itself not at all, and so gives
/// both the same weight however far they are: with A = W_QW_Qᵀ/√k its own query
/// moves it by 2A Cov A W_V, which grows as t²|Auᵀ||uAW_V|. (A token that sees
/// itself would have all its weight there: Kim21's lemma.)
///
/// Throws std::invalid_argument without such a token, or if the rate is 0.
Matrix padded_l2_witness(const HeadWeights& head, const Mask& mask, Index n,
                         double t);

/// |Auᵀ||uV|, the rate of the growth: of several heads the one with the largest
/// is the one to take.
double unbounded_rate(const HeadWeights& head);

}  // namespace lipscope
