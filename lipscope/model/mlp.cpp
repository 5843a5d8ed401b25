#include "lipscope/model/mlp.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/model/max_min.h"

namespace lipscope {
namespace {

void require_shape(const char* what, const Matrix& m, Index rows, Index cols) {
  require(m.rows() == rows && m.cols() == cols,
          "mlp {}: [{}x{}], expected [{}x{}]", what, m.rows(), m.cols(), rows,
          cols);
  require(m.allFinite(), "mlp {}: not all numbers are finite", what);
}

void require_bias(const char* what, const Vector& b, Index size) {
  require(b.size() == 0 || b.size() == size,
          "mlp {}: {} numbers for {} columns", what, b.size(), size);
  require(b.allFinite(), "mlp {}: not all numbers are finite", what);
}

Vector or_zero(const Vector& bias, Index size) {
  return bias.size() > 0 ? bias : Vector(Vector::Zero(size));
}

}  // namespace

void require_sound(const MlpWeights& w) {
  require(w.up.size() > 0 && w.down.size() > 0, "mlp: no weights");
  const Index d = w.up.rows(), m = w.up.cols();
  require_shape("up", w.up, d, m);
  if (w.gate.size() > 0) require_shape("gate", w.gate, d, m);
  require_shape("down", w.down, m, w.down.cols());
  require(
      w.activation != Activation::max_min || (m % 2 == 0 && w.gate.size() == 0),
      "mlp: max-min takes pairs of {} features, without a gate", m);
  require_bias("up_bias", w.up_bias, m);
  require_bias("gate_bias", w.gate_bias, w.gate.size() > 0 ? m : 0);
  require_bias("down_bias", w.down_bias, w.down.cols());
}

template <class Real>
Mlp<Real>::Mlp(const MlpWeights& w, int threads)
    : activation_(w.activation),
      gated_(w.gate.size() > 0),
      threads_(threads),
      out_(w.down.cast<Real>()),
      out_bias_(or_zero(w.down_bias, w.down.cols()).cast<Real>()) {
  require_sound(w);
  const Index m = w.up.cols();
  in_.resize(w.up.rows(), gated_ ? 2 * m : m);
  in_bias_.resize(in_.cols());
  if (gated_) {
    in_.leftCols(m) = w.gate.cast<Real>();
    in_bias_.head(m) = or_zero(w.gate_bias, m).cast<Real>();
  }
  in_.rightCols(m) = w.up.cast<Real>();
  in_bias_.tail(m) = or_zero(w.up_bias, m).cast<Real>();
}

template <class Real>
MatrixOf<Real> Mlp<Real>::expand(const MatrixOf<Real>& x) const {
  require(x.cols() == in_.rows(),
          "mlp: tokens have {} features, the layer reads {}", x.cols(),
          in_.rows());
  require(x.allFinite(), "mlp: the tokens are not all finite");
  MatrixOf<Real> h = product(as_is(x), as_is(in_), threads_);
  h.rowwise() += in_bias_.transpose();
  return h;
}

template <class Real>
MatrixOf<Real> Mlp<Real>::operator()(const MatrixOf<Real>& x) const {
  MatrixOf<Real> h = expand(x);
  const Index m = out_.rows();
  MatrixOf<Real> middle;
  if (activation_ == Activation::max_min) {
    const MatrixOf<Real> swapped = swapped_pairs(h);
    middle = std::move(h);
    swap_pairs(view(middle), view(swapped));
  } else {
    middle = activation_values<Real>(
        activation_, gated_ ? MatrixOf<Real>(h.leftCols(m)) : std::move(h),
        threads_);
  }
  if (gated_) middle.array() *= h.rightCols(m).array();
  MatrixOf<Real> y = product(as_is(middle), as_is(out_), threads_);
  y.rowwise() += out_bias_.transpose();
  return y;
}

// dy = (S ∘ dx W_in) W_out with the slopes S = act'(h), or, gated, the sum of
// the two halves of S ∘ dx [W_gate W_up], S = [act'(g) ∘ u, act(g)]; for
// max-min the pairs of dx W_in that S marks are swapped
template <class Real>
class Mlp<Real>::Jacobian final : public LinearOperator<Real> {
 public:
  Jacobian(const Mlp& map, const MatrixOf<Real>& x) : map_(map) {
    MatrixOf<Real> h = map.expand(x);
    if (map.activation_ == Activation::max_min) {
      slopes_ = swapped_pairs(h);
      return;
    }
    if (!map.gated_) {
      slopes_ = activation_slopes(map.activation_, std::move(h), map.threads_);
      return;
    }
    const Index m = map.out_.rows();
    const MatrixOf<Real> gate = h.leftCols(m);
    slopes_.resize(h.rows(), 2 * m);
    slopes_.leftCols(m) = activation_slopes(map.activation_, gate, map.threads_)
                              .cwiseProduct(h.rightCols(m));
    slopes_.rightCols(m) =
        activation_values(map.activation_, gate, map.threads_);
  }

  Index rows() const override { return slopes_.rows() * map_.out_.cols(); }
  Index cols() const override { return slopes_.rows() * map_.in_.rows(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(), "mlp: {} numbers for a tangent of {}", v.size(),
            cols());
    const Index n = slopes_.rows(), m = map_.out_.rows();
    MatrixOf<Real> d = product(as_is<Real>(unflatten(v, n, map_.in_.rows())),
                               as_is(map_.in_), map_.threads_);
    by_slopes(d);
    if (map_.gated_) d = (d.leftCols(m) + d.rightCols(m)).eval();
    VectorOf<Real> dy(rows());
    product_into(as_is(d), as_is(map_.out_), unflatten(dy, n, map_.out_.cols()),
                 map_.threads_);
    return dy;
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    require(u.size() == rows(), "mlp: {} numbers for a cotangent of {}",
            u.size(), rows());
    // the lines of apply, transposed and in reverse
    const Index n = slopes_.rows(), m = map_.out_.rows();
    MatrixOf<Real> g = product(as_is<Real>(unflatten(u, n, map_.out_.cols())),
                               transposed(map_.out_), map_.threads_);
    if (map_.gated_) {
      g.conservativeResize(n, 2 * m);
      g.rightCols(m) = g.leftCols(m).eval();
    }
    by_slopes(g);
    VectorOf<Real> gx(cols());
    product_into(as_is(g), transposed(map_.in_),
                 unflatten(gx, n, map_.in_.rows()), map_.threads_);
    return gx;
  }

 private:
  void by_slopes(MatrixOf<Real>& d) const {
    if (map_.activation_ == Activation::max_min)
      swap_pairs(view(d), view(slopes_));
    else
      d.array() *= slopes_.array();
  }

  const Mlp& map_;
  MatrixOf<Real> slopes_;  // or which pairs are swapped
};

template <class Real>
std::unique_ptr<LinearOperator<Real>> Mlp<Real>::linearize(
    const MatrixOf<Real>& x) const {
  return std::make_unique<Jacobian>(*this, x);
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace lipscope
