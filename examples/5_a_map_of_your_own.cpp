// A map of your own: write its value and its derivative, ask whether the
// derivative is right, and measure its norm like that of any attention.
//
// The map: each token t becomes t + tanh(t W), a residual layer.

#include <fmt/core.h>
#include <lipscope/lipscope.h>

using namespace lipscope;

namespace {

template <class Real>
class TanhLayer final : public Map<Real> {
 public:
  explicit TanhLayer(MatrixOf<Real> w) : w_(std::move(w)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    return x + MatrixOf<Real>((x * w_).array().tanh());
  }

  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override {
    return std::make_unique<Jacobian>(w_, x);
  }

 private:
  // J v = v + tanh'(x W) * (v W), token by token; borrows w, which must outlive
  // this
  class Jacobian final : public LinearOperator<Real> {
   public:
    Jacobian(const MatrixOf<Real>& w, const MatrixOf<Real>& x)
        : w_(w), slope_(1 - (x * w).array().tanh().square()) {}

    Index rows() const override { return slope_.size(); }
    Index cols() const override { return slope_.size(); }

    VectorOf<Real> apply(const VectorOf<Real>& v) const override {
      const MatrixOf<Real> dx = unflatten(v, slope_.rows(), slope_.cols());
      return flatten(MatrixOf<Real>(dx + slope_.cwiseProduct(dx * w_)));
    }
    VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
      const MatrixOf<Real> dy = unflatten(u, slope_.rows(), slope_.cols());
      return flatten(
          MatrixOf<Real>(dy + slope_.cwiseProduct(dy) * w_.transpose()));
    }

   private:
    const MatrixOf<Real>& w_;
    MatrixOf<Real> slope_;
  };

  MatrixOf<Real> w_;
};

}  // namespace

int main() {
  const Rng rng(0);
  const Matrix w = 0.2 * gaussian(32, 32, rng.split(0));
  const Matrix x = gaussian(20, 32, rng.split(1));
  const TanhLayer<double> exact(w);
  const TanhLayer<float> fast(w.cast<float>());

  const DerivativeCheck check = check_derivative(exact, x, rng.split(2));
  const double adjoint = adjoint_defect(*exact.linearize(x), rng.split(3));
  const Measurement m = measure_norm(fast, exact, x, {.enclose = 1.05});
  fmt::print("derivative to {:.1e}, adjoint to {:.1e}\n", check.error, adjoint);
  fmt::print("{:.6g} <= |J| <= {:.6g}, but for a chance of {:.0e}\n", m.lower,
             *m.upper_whp, m.delta);

  // a residual layer with 1-Lipschitz tanh: at most 1 + the Frobenius norm of W
  const double most = 1 + w.norm();
  return check.error < 1e-7 && adjoint < 1e-12 && m.lower <= most ? 0 : 1;
}
