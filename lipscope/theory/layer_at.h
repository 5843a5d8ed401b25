#pragma once

#include <optional>
#include <vector>

#include "lipscope/attention/multi_head.h"

namespace lipscope {

/// The chosen heads of a layer side by side, and what its local certificates
/// take of the weights alone: made once, used at many inputs. Key and value
/// heads that several query heads share are repeated.
struct LayerParts {
  Index heads = 0, k = 0, w = 0;
  bool projected = false;
  Mask mask = Mask::none;
  int threads = 0;
  Matrix query, key, value;  ///< [d×H·k], [d×H·k], [d×H·w]; query with 1/√k
  Matrix output;             ///< [H·w×e]; empty unless projected
  /// ‖W_V‖_F of each head with nothing cancelled. Where a kind makes W_V of
  /// other weights, as tied L2 attention W_QW_QᵀW_V/√k, this is the product of
  /// their norms: rounding in W_V is a small share of it, and W_V may be 0.
  Vector value_size;
  Vector query_bias, key_bias;  ///< of the chosen heads; query with 1/√k
  Vector value_bias;         ///< where it acts on the Jacobian; otherwise empty
  bool biased = false;       ///< whether a query bias reaches the keys
  AttentionOptions options;  ///< the kind, its scales, the positions
  /// Of q/k-norm, for the columns of query and key; 1/√k is then in the first
  /// and not in the weights. Empty: none.
  Vector query_gain, key_gain;
  std::optional<RelativeBias> relative;  ///< of the chosen heads
  /// Dot-product attention without rotary positions and q/k-norm: a softmax of
  /// scores of projections as they are. (Tied kinds have their queries for
  /// keys, and 1/√k is in the queries where the kind has it there.)
  bool plain = true;

  bool normed_over_heads() const {
    return options.query_key_norm && options.query_key_norm->over_heads;
  }
};

LayerParts layer_parts(const AttentionWeights& weights,
                       const AttentionOptions& options);

/// The projections of a head, normed, turned by position, and the features
/// made of them.
struct BentHead {
  HeadFeatures<double> raw, at;
};

/// The layer at one sequence.
struct LayerAt {
  Matrix x;  ///< [n×d]
  /// The features that are compared and mixed, [n×H·k], [n×H·k], [n×H·w]. L2
  /// attention has k + 1 in a head, see attention/l2.h. Values carry no bias
  /// where it moves all outputs alike.
  Matrix q, k, v;
  std::vector<Matrix> p;  ///< for each head, [n×n]
  /// P', the derivative of P by the logits: where weights are shares of a whole
  /// dP_ij = P'_ij(ds_ij − Σ_l P_il ds_il) with P' = P, and this is empty;
  /// otherwise dP_ij = P'_ij ds_ij.
  std::vector<Matrix> unshared_slope;
  /// Where the kind makes features of the projections, for each head.
  std::vector<BentHead> bent;
  std::optional<Rope<double>> rope;
  std::optional<BlockNorm<double>> query_norm, key_norm;  ///< q/k-norm
  /// What rounding in q, k, v and p may do to a norm made of them: a relative
  /// allowance 1e-9 + 64 u (d + the largest logit), u = 2⁻⁵³; the logit, where
  /// features are made or normed, at its largest |q_i||k_j|. q/k-norm divides
  /// projections by their size, which may be far below |x||W|, of which they
  /// err by d u: there it is 64 times that for logits as well.
  double allowance = 0.0;

  /// Whether queries and keys are more than their projections.
  bool sloped() const { return rope || query_norm || !bent.empty(); }

  const Matrix& slope(Index h) const {
    return unshared_slope.empty() ? p[h] : unshared_slope[h];
  }
};

LayerAt layer_at(const LayerParts& weights, const Matrix& x);

/// The tokens that one of the tokens begin, …, begin + rows − 1 of n sees, and
/// those between them.
TokenRange seen_by_any(const Mask& mask, Index begin, Index rows, Index n);

/// c_i^h for all heads side by side, [n×H·w]: the outputs P v of the heads
/// where weights are shares of a whole, otherwise 0. A logit s_ij moves output
/// i along v_j − c_i, by P'_ij.
Matrix centres(const LayerParts& layer, const LayerAt& at);

/// P^h x^h for all heads, x^h [n×·] side by side.
Matrix head_means(const LayerParts& layer, const LayerAt& at, const Matrix& x);

}  // namespace lipscope
