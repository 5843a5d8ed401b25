#include "lipscope/attention/layer_norm.h"

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// Σ_i of term(i), in an order that depends on the length alone. Eigen's depends
// on where a row stands in memory, and with it on the rows above.
template <class Real, class Term>
Real sum_of(Index size, const Term& term) {
  constexpr Index lanes = 32;
  Real sums[lanes] = {};
  Index i = 0;
  for (; i + lanes <= size; i += lanes)
    for (Index k = 0; k < lanes; ++k) sums[k] += term(i + k);
  for (Index k = 0; i + k < size; ++k) sums[k] += term(i + k);
  for (Index half = lanes / 2; half > 0; half /= 2)
    for (Index k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

// each row less its mean
template <class Real>
void centre(MatrixOf<Real>& x) {
  const Index d = x.cols();
  for (Index r = 0; r < x.rows(); ++r) {
    Real* row = x.data() + r * d;
    const Real mean =
        sum_of<Real>(d, [&](Index i) { return row[i]; }) / static_cast<Real>(d);
    for (Index i = 0; i < d; ++i) row[i] -= mean;
  }
}

void require_finite(const char* what, const Vector& v) {
  for (Index i = 0; i < v.size(); ++i)
    require(std::isfinite(v[i]), "{}: entry {} is {}", what, i, v[i]);
}

}  // namespace

void require_sound(const NormWeights& w) {
  require(w.gain.size() > 0, "norm: no gain");
  require(w.bias.size() == 0 || w.bias.size() == w.gain.size(),
          "norm: {} numbers of bias for {} features", w.bias.size(),
          w.gain.size());
  require(std::isfinite(w.epsilon) && w.epsilon > 0,
          "norm: epsilon is {}, expected a positive number", w.epsilon);
  require_finite("norm gain", w.gain);
  require_finite("norm bias", w.bias);
}

template <class Real>
LayerNorm<Real>::LayerNorm(const NormWeights& weights)
    : centred_(weights.kind == NormWeights::Kind::layer),
      epsilon_(static_cast<Real>(weights.epsilon)),
      gain_(weights.gain.cast<Real>()),
      bias_(weights.bias.cast<Real>()) {
  require_sound(weights);
}

// u = z/√(σ² + ε), and 1/√(σ² + ε) of each token
template <class Real>
struct LayerNorm<Real>::State {
  MatrixOf<Real> u;
  VectorOf<Real> shrink;
};

template <class Real>
auto LayerNorm<Real>::state_at(const MatrixOf<Real>& x) const -> State {
  require(x.cols() == gain_.size(),
          "norm: tokens have {} features, the norm reads {}", x.cols(),
          gain_.size());
  require(x.allFinite(), "norm: the tokens are not all finite");
  State s{x, {}};
  if (centred_) centre(s.u);
  s.shrink.resize(x.rows());
  for (Index r = 0; r < x.rows(); ++r) {
    const Real* row = s.u.data() + r * x.cols();
    const Real squares =
        sum_of<Real>(x.cols(), [&](Index i) { return row[i] * row[i]; });
    s.shrink[r] =
        1 / std::sqrt(squares / static_cast<Real>(x.cols()) + epsilon_);
  }
  if (!s.shrink.allFinite() || (s.shrink.array() == 0).any())
    throw RunError("norm: the variance overflows; the tokens are too large");
  s.u.array().colwise() *= s.shrink.array();
  return s;
}

template <class Real>
MatrixOf<Real> LayerNorm<Real>::operator()(const MatrixOf<Real>& x) const {
  MatrixOf<Real> y = state_at(x).u;
  y.array().rowwise() *= gain_.transpose().array();
  if (bias_.size() > 0) y.rowwise() += bias_.transpose();
  return y;
}

template <class Real>
class LayerNorm<Real>::Jacobian final : public LinearOperator<Real> {
 public:
  Jacobian(const LayerNorm& map, State at) : map_(map), at_(std::move(at)) {}

  Index rows() const override { return at_.u.size(); }
  Index cols() const override { return at_.u.size(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(), "norm: {} numbers for a tangent of {}",
            v.size(), cols());
    MatrixOf<Real> d = unflatten(v, at_.u.rows(), at_.u.cols());
    if (map_.centred_) centre(d);
    shrink(d);
    d.array().rowwise() *= map_.gain_.transpose().array();
    return flatten(d);
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& w) const override {
    require(w.size() == rows(), "norm: {} numbers for a cotangent of {}",
            w.size(), rows());
    // the lines of apply in reverse; each is symmetric
    MatrixOf<Real> g = unflatten(w, at_.u.rows(), at_.u.cols());
    g.array().rowwise() *= map_.gain_.transpose().array();
    shrink(g);
    if (map_.centred_) centre(g);
    return flatten(g);
  }

 private:
  // t ↦ (t − u ⟨u, t⟩/D)/√(σ² + ε), token by token
  void shrink(MatrixOf<Real>& t) const {
    const Index d = t.cols();
    for (Index r = 0; r < t.rows(); ++r) {
      const Real* u = at_.u.data() + r * d;
      Real* row = t.data() + r * d;
      const Real along =
          sum_of<Real>(d, [&](Index i) { return u[i] * row[i]; }) /
          static_cast<Real>(d);
      for (Index i = 0; i < d; ++i)
        row[i] = (row[i] - along * u[i]) * at_.shrink[r];
    }
  }

  const LayerNorm& map_;
  State at_;
};

template <class Real>
std::unique_ptr<LinearOperator<Real>> LayerNorm<Real>::linearize(
    const MatrixOf<Real>& x) const {
  return std::make_unique<Jacobian>(*this, state_at(x));
}

template class LayerNorm<float>;
template class LayerNorm<double>;

}  // namespace lipscope
