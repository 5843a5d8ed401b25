#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/attention/relative_bias.h"
#include "lipscope/attention/rope.h"
#include "lipscope/attention/tiled_head.h"
#include "lipscope/model/contraction.h"
#include "lipscope/train/layout.h"
#include "lipscope/train/pass.h"

namespace lipscope {

struct AttentionShape {
  Kind kind = Kind::dot;       ///< any that AttentionLayer can learn
  bool contractive = false;    ///< l2 only: divided by its Lip_inf bound,
  double contraction = 1.0;    ///< and multiplied with this
  bool by_coordinate = false;  ///< each coordinate by a bound of its own
  Index width = 0, heads = 1;
  Index head_width = 0;   ///< 0: the heads share the width
  bool project = true;    ///< through W_O; else the heads stand side by side
  bool rotary = false;    ///< dot only: queries and keys are rotated
  bool relative = false;  ///< a learnt number for each distance is added to
                          ///< scores, of each head
  Index context = 1;      ///< the n of that bound, and how many distances
  Index layers = 1;       ///< of the model, see tied_value
  bool quiet = false;     ///< begins as train/quiet_start.h says; l2 only
};

/// Causal multi-head attention without biases, on the heads of attention/:
///
///   dot, l2_untied  y = [P_1 v_1, …, P_H v_H] W_O,  [q k v] = x W_qkv
///   l2              y = Σ_h P_h x A_h W_V,h W_O,h = [P_1 q_1, …] U,
///                   q = x W_Q,  U_h = M_h W_O,h,  M_h = W_Q,hᵀ W_V,h/√k
///                   (side by side: M_h in place of U_h)
///   contractive     the same with cU/c(W) in place of U, c the contraction
///                   and c(W) as in model/contraction.h, or for each column of
///                   U by itself as in model/coordinate_contraction.h
///
/// P_h is the softmax of scores s_ij, or with `relative` of s_ij + b_h,i−j.
///
/// It can learn every kind whose weights are a softmax and whose derivatives do
/// not read the projections (attention/kinds.h).
///
/// A tied layer multiplies the tokens with two matrices, where the others have
/// four: what W_V and W_O do to them is one [d×d] product of weights.
template <class Real>
class AttentionLayer {
 public:
  AttentionLayer(Layout& layout, const std::string& name, AttentionShape shape);

  /// x must stay where it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const MatrixOf<Real>& gy, const Pass& pass);

  /// What forward was last given, which must still be there.
  const MatrixOf<Real>& input() const { return *x_; }

  /// The same layer as attention/ reads it; what it is divided by is in W_O.
  AttentionWeights exported(const VectorOf<Real>& weights) const;
  /// What is added to scores by distance, if it is learnt.
  std::optional<RelativeBias> exported_relative_bias(
      const VectorOf<Real>& weights) const;
  /// What the output is divided by, c(W)/c; 1 unless it is contractive. Not
  /// where each coordinate has a number of its own.
  double divisor(const VectorOf<Real>& weights) const;

  const AttentionShape& shape() const { return shape_; }

 private:
  const AttentionKind& kind() const { return kind_of(shape_.kind); }
  bool tied() const { return kind().tied; }
  Index head_width() const { return shape_.head_width; }
  Index all_heads() const { return shape_.heads * shape_.head_width; }
  ConstL2Views<Real> l2_views(const VectorOf<Real>& weights) const;
  HeadFeatures<Real> features(Index sequence, Index h, Index length) const;
  Weighting weighting(const VectorOf<Real>& weights, Index h,
                      Index length) const;
  void make_effective_output(const VectorOf<Real>& weights);
  void divide_effective(const VectorOf<Real>& weights);
  void divide_effective_backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients);
  Vector phi_inverses(const VectorOf<Real>& weights) const;
  void effective_output_backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients);

  AttentionShape shape_;
  Slot in_;         // W_qkv [d×3Hk], or W_Q [d×Hk]
  Slot value_;      // W_V [d×Hk], if tied
  Slot output_;     // W_O [Hk×d], if there is one
  Slot distances_;  // b [H×T], if it is learnt
  std::optional<Rotary> rotary_;

  const MatrixOf<Real>* x_ = nullptr;
  MatrixOf<Real> projected_;                           // [N×3Hk], or [N×Hk]
  std::vector<std::optional<TiledHead<Real>>> heads_;  // of each sequence
  MatrixOf<Real> mixed_;                               // P_h v_h, or P_h q_h
  MatrixOf<Real> y_;
  MatrixOf<Real> inner_, effective_, geffective_;  // M, U (over c), their gU
  double divisor_ = 1.0;
  VectorOf<Real> divisors_;  // of each coordinate, c_j/c
  MatrixOf<Real> gmixed_, gprojected_, gx_;
  std::vector<Vector> gdistances_;  // of each head of each sequence
};

}  // namespace lipscope
