#pragma once

#include <string>

#include "lipscope/train/layout.h"
#include "lipscope/train/pass.h"

namespace lipscope {

struct PositionHeadsShape {
  Index width = 0;  ///< of a token
  Index heads = 1, head_width = 1;
  Index context = 1;  ///< T, distances 0 … T − 1
};

/// Heads that look by distance alone, as attention/position_heads.h has them,
/// without their shares:
///
///   y_i = [Σ_{t ≤ i} p_th x_{i−t} V_h]_h,   p_h = softmax(b_h) over 0 … T − 1
///
/// They begin one after another: head h looks back by h characters.
template <class Real>
class PositionHeadsLayer {
 public:
  PositionHeadsLayer(Layout& layout, const std::string& name,
                     PositionHeadsShape shape);

  /// y is [N×H·k]; x must stay where it is until backward.
  void forward(const VectorOf<Real>& weights, const MatrixOf<Real>& x,
               View<Real> y, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const ConstView<Real>& gy, const Pass& pass);

  /// p [T×H], in f64.
  Matrix exported_weights(const VectorOf<Real>& weights) const;
  /// V_h side by side [d×H·k], in f64.
  Matrix value(const VectorOf<Real>& weights) const;

 private:
  PositionHeadsShape shape_;
  Slot bias_;   // b [H×T]
  Slot value_;  // [d×H·k]
  const MatrixOf<Real>* x_ = nullptr;
  MatrixOf<Real> p_;  // [H×T]
  MatrixOf<Real> v_;  // x V
  MatrixOf<Real> gv_, gx_;
};

}  // namespace lipscope
