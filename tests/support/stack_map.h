#pragma once

#include "lipscope/attention/layer_norm.h"
#include "lipscope/control/stack_constant.h"
#include "lipscope/core/gemm.h"
#include "lipscope/operators/compose.h"

namespace lipscope::test {

/// x ↦ x W.
class Times final : public Map<double> {
 public:
  explicit Times(Matrix w) : w_(std::move(w)) {}

  Matrix operator()(const Matrix& x) const override {
    return product<double>(as_is(x), as_is(w_), 1);
  }
  std::unique_ptr<LinearOperator<double>> linearize(
      const Matrix& x) const override {
    return std::make_unique<Jacobian>(w_, x.rows());
  }

 private:
  class Jacobian final : public LinearOperator<double> {
   public:
    Jacobian(const Matrix& w, Index n) : w_(w), n_(n) {}
    Index rows() const override { return n_ * w_.cols(); }
    Index cols() const override { return n_ * w_.rows(); }
    Vector apply(const Vector& v) const override {
      const Matrix dx = unflatten<double>(v, n_, w_.rows());
      return flatten<double>(product<double>(as_is(dx), as_is(w_), 1));
    }
    Vector apply_adjoint(const Vector& u) const override {
      const Matrix gy = unflatten<double>(u, n_, w_.cols());
      return flatten<double>(product<double>(as_is(gy), transposed(w_), 1));
    }

   private:
    const Matrix& w_;
    Index n_;
  };

  Matrix w_;
};

/// The stack as a map of one sequence, to its logits if it has a head.
inline MapPtr<double> stack_map(const Stack& stack) {
  const auto after = [](MapPtr<double> outer, MapPtr<double> inner) {
    return inner ? compose<double>(std::move(outer), std::move(inner))
                 : std::move(outer);
  };
  const auto norm_of = [](const NormWeights& norm) -> MapPtr<double> {
    return std::make_unique<LayerNorm<double>>(norm);
  };
  MapPtr<double> all;
  for (const LayerWeights& layer : stack.layers) {
    const auto branch = [&](MapPtr<double> f, const NormWeights& norm) {
      const bool normed = norm.gain.size() > 0;
      if (normed && layer.pre_norm()) f = after(std::move(f), norm_of(norm));
      all = after(residual<double>(std::move(f)), std::move(all));
      if (normed && !layer.pre_norm())
        all = after(norm_of(norm), std::move(all));
    };
    branch(std::make_unique<MultiHeadAttention<double>>(
               layer.attention,
               AttentionOptions{
                   .kind = stack.kind, .mask = Mask::causal, .threads = 1}),
           layer.attention_norm);
    branch(std::make_unique<Mlp<double>>(layer.mlp, 1), layer.mlp_norm);
  }
  if (stack.last_norm) all = after(norm_of(*stack.last_norm), std::move(all));
  if (stack.head.size() > 0)
    all = after(std::make_unique<Times>(stack.head), std::move(all));
  return all;
}

}  // namespace lipscope::test
