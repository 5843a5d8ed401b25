#pragma once

#include <string>

#include "lipscope/train/linear_layer.h"

namespace lipscope {

/// A long short-term memory [Hochreiter97] along each sequence, from a state of
/// zeros:
///
///   [i f g o] = x_t W_x + h_{t−1} W_h + b,
///   c_t = σ(f + 1) c_{t−1} + σ(i) tanh(g),   h_t = σ(o) tanh(c_t)
///
/// The one in the forget gate has it begin open [Jozefowicz15].
template <class Real>
class LstmLayer {
 public:
  LstmLayer(Layout& layout, const std::string& name, Index width);

  /// h. x must stay where it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const MatrixOf<Real>& gh, const Pass& pass);

 private:
  LinearLayer<Real> in_;
  Slot recurrent_;  // W_h [d×4d]
  const MatrixOf<Real>* x_ = nullptr;
  MatrixOf<Real> gates_;  // σ(i), σ(f + 1), tanh(g), σ(o) [N×4d]
  MatrixOf<Real> c_, h_, before_, ggates_, gx_;
};

}  // namespace lipscope
