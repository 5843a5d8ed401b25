#pragma once

#include <string>

#include "lipscope/model/activation.h"
#include "lipscope/train/linear_layer.h"

namespace lipscope {

/// y = act(x W_up + b_up) W_down + b_down, for each token by itself.
template <class Real>
class MlpLayer {
 public:
  MlpLayer(Layout& layout, const std::string& name, Index width, Index hidden,
           Activation activation);

  /// x must stay where it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const MatrixOf<Real>& gy, const Pass& pass);

 private:
  LinearLayer<Real> up_, down_;
  Activation activation_;
  const MatrixOf<Real>* x_ = nullptr;
  MatrixOf<Real> a_, slope_, y_, gh_, gx_;
};

}  // namespace lipscope
