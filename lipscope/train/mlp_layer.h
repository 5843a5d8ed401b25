#pragma once

#include <optional>
#include <string>

#include "lipscope/model/contraction.h"
#include "lipscope/train/linear_layer.h"

namespace lipscope {

/// y = act(x W_up + b_up) W_down + b_down, for each token by itself.
///
/// With a contraction c, of an invertible model, W_down is multiplied by s =
/// c/c(W) (see model/contraction.h), so that Lip_inf ≤ c; biases are free.
template <class Real>
class MlpLayer {
 public:
  MlpLayer(Layout& layout, const std::string& name, Index width, Index hidden,
           Activation activation, std::optional<double> contraction = {},
           double size = 1.0);

  /// x must stay where it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, const Pass& pass);
  /// gx.
  const MatrixOf<Real>& backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const MatrixOf<Real>& gy, const Pass& pass);

 private:
  ConstMlpViews<Real> views(const VectorOf<Real>& weights) const;
  ConstView<Real> down(const VectorOf<Real>& weights) const;
  void contraction_gradient(const VectorOf<Real>& weights,
                            VectorOf<Real>& gradients) const;

  LinearLayer<Real> up_, down_;
  Activation activation_;
  std::optional<double> contraction_;
  double scale_ = 1.0;          // s
  MatrixOf<Real> scaled_down_;  // s W_down, if there is a contraction
  const MatrixOf<Real>* x_ = nullptr;
  MatrixOf<Real> a_, y_, gh_, gx_;
  MatrixOf<Real> slope_;  // act', or which pairs are swapped
};

}  // namespace lipscope
