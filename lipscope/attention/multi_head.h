#pragma once

#include <optional>
#include <vector>

#include "lipscope/attention/cosine.h"
#include "lipscope/attention/query_key_norm.h"
#include "lipscope/attention/relative_bias.h"
#include "lipscope/attention/rope.h"
#include "lipscope/attention/weights.h"
#include "lipscope/core/gemm.h"
#include "lipscope/operators/common_shift.h"
#include "lipscope/operators/map.h"

namespace lipscope {

struct AttentionOptions {
  Kind kind = Kind::dot;
  Mask mask = Mask::none;
  std::vector<Index> heads;  ///< the chosen heads, each once; empty: all
  bool project = true;       ///< through the output projection, if there is one
  Index sequences = 1;       ///< of equal length, laid under one another
  CosineScales cosine = {};  ///< of cosine attention
  /// Rotary positions, where q and k are rotated (see rope.h). Not for tied L2:
  /// rotated tokens can be near each other while their values are far apart,
  /// and the map would not be Lipschitz any more.
  std::optional<Rotary> rope = {};
  /// Where q and k are normed, ahead of their rotation. Not for tied kinds; and
  /// a norm over heads is one of all heads, which cannot be chosen from.
  std::optional<QueryKeyNorm> query_key_norm = {};
  /// What is added to scores by distance, by all heads of the layer. Not for
  /// sigmoid.
  std::optional<RelativeBias> relative_bias = {};
  /// Tokens that weigh: P_ij ∝ w_j e^{s_ij} with log w_j here, one for each of
  /// the n tokens of a sequence; empty: all alike. Not for sigmoid, where
  /// weights are not shares of a whole.
  Vector log_mass = {};
  /// Token i sees the first seen[i] ≥ 1 of the n tokens, whatever the mask says
  /// (tokens that share a position, tokens that look and are not looked at);
  /// empty: as the mask says. Not for sigmoid.
  std::vector<Index> seen = {};
  int threads = 0;  ///< 0: all cores

  /// Whether scores depend on q = XW_Q + b_Q and k alone, in no other way than
  /// the kind says.
  bool plain_scores() const {
    return !rope && !query_key_norm && !relative_bias;
  }

  /// Bytes that a Jacobian may keep of attention weights; beyond them they are
  /// rebuilt tile by tile at every product. 0: a quarter of the machine's.
  /// Queries, keys and values beyond them, or of more than 2²⁶ numbers in a
  /// sequence, are made anew as well where they are projections of x alone.
  /// What is kept and what is rebuilt have the same bits, and so has all that
  /// follows.
  std::uint64_t memory = 0;
};

/// Multi-head self-attention, the map that is measured [Vaswani17; Kim21]:
///
///   f(X) = Σ_h P_h X W_V,h W_O,h + b     projected ("attn"), or
///   f(X) = [P_1 X W_V,1, …, P_H X W_V,H]   end to end ("core"),
///
/// with P_h as its kind says. Several sequences stacked in X do not see each
/// other: the Jacobian is block-diagonal, and their projections share a
/// product. What comes out for a sequence has the same bits as if it were alone
/// (the promise of core/gemm.h).
///
/// Dot-product and untied L2 attention have unbounded Jacobians: a norm
/// measured here speaks of the point, or of a stated ball, never of the map.
template <class Real>
class MultiHeadAttention final : public Map<Real> {
 public:
  MultiHeadAttention(const AttentionWeights& weights, AttentionOptions options);

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override;
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override;

  /// The gradient by X of ⟨u, J(X) v⟩, [n×d], for directions v of the input and
  /// u of the output that stand still: where v and u are the top singular pair,
  /// that of ‖J(X)‖₂. A reverse pass over the product J v, for every kind, mask
  /// and option; it costs about four products, and n² memory for each head.
  MatrixOf<Real> tangent_gradient(const MatrixOf<Real>& x,
                                  const VectorOf<Real>& v,
                                  const VectorOf<Real>& u) const;

  /// What the layer does to a shift of all tokens, see CommonMode, where J is
  /// its own Jacobian; std::invalid_argument for any other operator. Known of
  /// dot-product and tied L2 attention from 32 tokens on. Attention often
  /// stretches such a shift most. What is returned borrows the weights: it must
  /// not outlive the map.
  CommonShift<Real> common_shift(const LinearOperator<Real>& J) const;

 private:
  class Jacobian;

  AttentionOptions options_;
  Index heads_, query_width_, value_width_;
  // [d×(H·k + H·k + H·w)], the chosen heads' q, k and v side by side with 1/√k
  // folded into q where scores are divided by it; tied, k is not there twice
  MatrixOf<Real> projection_;
  VectorOf<Real> projection_bias_;
  MatrixOf<Real> output_;  // [H·w×e], or empty
  VectorOf<Real> output_bias_;
  // of q/k-norm, for the columns of q and of k, with 1/√k in the first
  VectorOf<Real> query_gain_, key_gain_;
  // the two matrices, ready to be multiplied with as they stand and transposed
  RightFactor<Real> project_, unproject_, mix_, unmix_;
};

}  // namespace lipscope
