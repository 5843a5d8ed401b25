#pragma once

#include <string>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/layout.h"
#include "lipscope/train/pass.h"

namespace lipscope {

/// LayerNorm of each token by itself [Ba16]:
///
///   y = γ ∘ u + β,  u = (x − mean(x)) r,  r = 1/√(var(x) + ε)
template <class Real>
class NormLayer {
 public:
  static constexpr double epsilon = LanguageModelConfig::epsilon;

  NormLayer(Layout& layout, const std::string& name, Index width,
            const Initial& gain = {.mean = 1.0});

  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, int threads);
  /// gy → gx, in place.
  void backward(const VectorOf<Real>& weights, VectorOf<Real>& gradients,
                MatrixOf<Real>& gy, int threads) const;

  Slot gain() const { return gain_; }
  Slot bias() const { return bias_; }

 private:
  Slot gain_, bias_;
  MatrixOf<Real> u_, y_;
  VectorOf<Real> r_;
};

}  // namespace lipscope
