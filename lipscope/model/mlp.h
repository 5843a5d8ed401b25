#pragma once

#include "lipscope/model/activation.h"
#include "lipscope/operators/map.h"

namespace lipscope {

/// The parameters of a transformer's MLP, in f64; absent ones are empty.
///
///   plain  y = act(x W_up + b_up) W_down + b_down
///   gated  y = (act(x W_gate + b_gate) ∘ (x W_up + b_up)) W_down + b_down
struct MlpWeights {
  Matrix up;    ///< [d×m]
  Matrix gate;  ///< [d×m]; empty: not gated
  Matrix down;  ///< [m×e]
  Vector up_bias, gate_bias, down_bias;
  Activation activation = Activation::gelu;
};

/// Throws std::invalid_argument unless the shapes fit and every number is
/// finite.
void require_sound(const MlpWeights& weights);

/// The MLP of each token by itself; the products are made for all rows at once.
template <class Real>
class Mlp final : public Map<Real> {
 public:
  explicit Mlp(const MlpWeights& weights, int threads = 0);

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override;
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override;

 private:
  class Jacobian;

  MatrixOf<Real> expand(const MatrixOf<Real>& x) const;

  Activation activation_;
  bool gated_;
  int threads_;
  MatrixOf<Real> in_;  // W_up, or [W_gate W_up]
  MatrixOf<Real> out_;
  VectorOf<Real> in_bias_, out_bias_;
};

}  // namespace lipscope
