// The checker itself: it must see a wrong derivative and a wrong adjoint.

#include "lipscope/operators/check.h"

#include <gtest/gtest.h>

#include "lipscope/operators/linear_operator.h"

namespace lipscope {
namespace check_test {

// x ↦ x∘x, with a Jacobian and an adjoint that can be made wrong
class Square final : public Map<double> {
 public:
  explicit Square(double forward = 2.0, double backward = 2.0)
      : forward_(forward), backward_(backward) {}

  Matrix operator()(const Matrix& x) const override {
    return x.cwiseProduct(x);
  }
  std::unique_ptr<LinearOperator<double>> linearize(
      const Matrix& x) const override {
    return std::make_unique<Jacobian>(flatten(x), forward_, backward_);
  }

 private:
  class Jacobian final : public LinearOperator<double> {
   public:
    Jacobian(Vector x, double forward, double backward)
        : x_(std::move(x)), forward_(forward), backward_(backward) {}
    Index rows() const override { return x_.size(); }
    Index cols() const override { return x_.size(); }
    Vector apply(const Vector& v) const override {
      return forward_ * x_.cwiseProduct(v);
    }
    Vector apply_adjoint(const Vector& u) const override {
      return backward_ * x_.cwiseProduct(u);
    }

   private:
    Vector x_;
    double forward_, backward_;
  };

  double forward_, backward_;
};

const Matrix x = gaussian(3, 4, Rng(1));

TEST(CheckDerivative, AcceptsARightOne) {
  EXPECT_LT(check_derivative(Square(), x, Rng(2)).error, 1e-12);
}

TEST(CheckDerivative, SeesAWrongOne) {
  EXPECT_GT(check_derivative(Square(2.001), x, Rng(2)).error, 1e-4);
  EXPECT_EQ(check_derivative(Square(0.0), x, Rng(2)).magnitude, 0.0);
}

TEST(AdjointDefect, AcceptsARightOne) {
  EXPECT_LT(adjoint_defect(*Square().linearize(x), Rng(2)), 1e-14);
}

TEST(AdjointDefect, SeesAWrongOne) {
  EXPECT_GT(adjoint_defect(*Square(2.0, 2.001).linearize(x), Rng(2)), 1e-5);
}

}  // namespace check_test
}  // namespace lipscope
