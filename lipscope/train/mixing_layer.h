#pragma once

#include <optional>
#include <string>

#include "lipscope/attention/position_heads.h"
#include "lipscope/train/attention_layer.h"
#include "lipscope/train/position_heads_layer.h"

namespace lipscope {

struct MixingShape {
  AttentionShape attention;  ///< of the heads that compare; heads = 0: none
  Index position_heads = 0;
  bool apart = false;  ///< heads write coordinates of their own
};

/// What mixes the tokens of a sequence: attention with its W_O, or heads that
/// stand side by side, position heads first,
///
///   y = [c_1 y_1, …, c_H y_H],   c = √softmax(s),
///
/// of which none shares a coordinate with another and Σc² = 1: the constant of
/// all is at most the largest of one, where they are of one kind.
template <class Real>
class MixingLayer {
 public:
  MixingLayer(Layout& layout, const std::string& name,
              const MixingShape& shape);

  /// x must stay where it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const MatrixOf<Real>& gy, const Pass& pass);

  /// What forward was last given, which must still be there.
  const MatrixOf<Real>& input() const { return *x_; }

  /// The heads that compare, as attention/ reads them; the shares are in W_O.
  /// Without such heads it has none.
  AttentionWeights exported(const VectorOf<Real>& weights) const;
  std::optional<PositionHeads> exported_position_heads(
      const VectorOf<Real>& weights) const;
  std::optional<RelativeBias> exported_relative_bias(
      const VectorOf<Real>& weights) const;

  const AttentionLayer<Real>* attention() const {
    return attention_ ? &*attention_ : nullptr;
  }
  const MixingShape& shape() const { return shape_; }

 private:
  Index heads() const { return shape_.position_heads + shape_.attention.heads; }
  Index head_width() const { return shape_.attention.width / heads(); }
  Vector shares(const VectorOf<Real>& weights) const;

  MixingShape shape_;
  std::optional<PositionHeadsLayer<Real>> positions_;
  std::optional<AttentionLayer<Real>> attention_;
  Slot share_;  // s [1×H], if they are apart

  const MatrixOf<Real>* x_ = nullptr;
  VectorOf<Real> c_;
  MatrixOf<Real> heads_;  // [y_1 … y_H], before the shares
  MatrixOf<Real> y_, gheads_, gattention_, gx_;
};

}  // namespace lipscope
