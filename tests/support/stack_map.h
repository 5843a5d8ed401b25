#pragma once

#include "lipscope/core/gemm.h"
#include "lipscope/model/stack.h"
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

/// One feature, one head of tied L2 attention, an MLP with relu, no norms.
struct ScalarLayer {
  double query = 1, value = 1, output = 1, up = 1, down = 1;
};
inline LayerWeights scalar_layer(const ScalarLayer& of) {
  const auto scalar = [](double a) -> Matrix {
    return Matrix::Constant(1, 1, a);
  };
  LayerWeights w;
  w.attention.query = scalar(of.query);
  w.attention.value = scalar(of.value);
  w.attention.output = scalar(of.output);
  w.mlp = {.up = scalar(of.up),
           .down = scalar(of.down),
           .activation = Activation::relu};
  w.norm = NormPlace::none;
  w.mask = Mask::causal;
  w.kind = Kind::l2;
  return w;
}

/// The stack to its logits, if it has a head.
inline MapPtr<double> stack_map(const Stack& stack) {
  MapPtr<double> hidden = lipscope::stack_map(stack, 1);
  if (stack.head.size() == 0) return hidden;
  return compose<double>(std::make_unique<Times>(stack.head),
                         std::move(hidden));
}

}  // namespace lipscope::test
