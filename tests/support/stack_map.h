#pragma once

#include "lipscope/control/stack_map.h"

namespace lipscope::test {

/// x ↦ x W.
class Times final : public Map<double> {
 public:
  explicit Times(Matrix w) : w_(std::move(w)) {}

  Matrix operator()(const Matrix& x) const override { return x * w_; }
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
      return flatten<double>(unflatten<double>(v, n_, w_.rows()) * w_);
    }
    Vector apply_adjoint(const Vector& u) const override {
      return flatten<double>(unflatten<double>(u, n_, w_.cols()) *
                             w_.transpose());
    }

   private:
    const Matrix& w_;
    Index n_;
  };

  Matrix w_;
};

/// The stack to its logits, if it has a head.
inline MapPtr<double> stack_map(const Stack& stack) {
  MapPtr<double> hidden = lipscope::stack_map(stack, 1);
  if (stack.head.size() == 0) return hidden;
  return compose<double>(std::make_unique<Times>(stack.head),
                         std::move(hidden));
}

}  // namespace lipscope::test
