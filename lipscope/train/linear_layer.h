#pragma once

#include <string>

#include "lipscope/train/layout.h"
#include "lipscope/train/pass.h"

namespace lipscope {

/// y = x W, in pieces of the rows of x.
template <class Real>
void multiply_rows(const ConstView<Real>& x, const Factor<Real>& w,
                   View<Real> y, const Pass& pass);

/// y = x W + b, for each token by itself; b may be absent. It remembers
/// nothing: whoever made x keeps it.
template <class Real>
class LinearLayer {
 public:
  /// W begins with Glorot's deviation times `size`.
  LinearLayer(Layout& layout, const std::string& name, Index in, Index out,
              bool bias, double size = 1.0);

  void forward(const VectorOf<Real>& weights, const ConstView<Real>& x,
               View<Real> y, const Pass& pass) const;

  void backward(const VectorOf<Real>& weights, VectorOf<Real>& gradients,
                const ConstView<Real>& x, const ConstView<Real>& gy,
                View<Real> gx, const Pass& pass) const;

  /// backward, but for gx.
  void backward_weights(VectorOf<Real>& gradients, const ConstView<Real>& x,
                        const ConstView<Real>& gy, const Pass& pass) const;

  Slot weight() const { return weight_; }
  Slot bias() const { return bias_; }

 private:
  Slot weight_, bias_;  // bias: no rows if absent
};

}  // namespace lipscope
