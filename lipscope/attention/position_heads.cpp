#include "lipscope/attention/position_heads.h"

#include <algorithm>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// y_i += Σ_t p_t x_{i−t}, or with `adjoint` y_j += Σ_t p_t x_{j+t}, on the
// columns of one head of one sequence
template <class Real>
void convolve(const MatrixOf<Real>& weights, Index head, bool adjoint,
              const ConstView<Real>& x, View<Real> y) {
  const Index n = x.rows();
  const Index furthest = std::min(n, weights.rows());
  for (Index t = 0; t < furthest; ++t) {
    const Real p = weights(t, head);
    if (p == 0) continue;
    if (adjoint)
      y.topRows(n - t) += p * x.bottomRows(n - t);
    else
      y.bottomRows(n - t) += p * x.topRows(n - t);
  }
}

}  // namespace

void require_sound(const PositionHeads& heads) {
  const Index h = heads.weights.cols(), t = heads.weights.rows();
  require(h >= 1 && t >= 1, "position heads: {} heads, {} distances", h, t);
  require(heads.value.rows() >= 1 && heads.value.cols() >= h &&
              heads.value.cols() % h == 0,
          "position heads: values [{}x{}] of {} heads", heads.value.rows(),
          heads.value.cols(), h);
  require(heads.share.size() == h, "position heads: {} shares for {} heads",
          heads.share.size(), h);
  require(heads.width >= heads.value.cols(),
          "position heads: {} coordinates for values of {}", heads.width,
          heads.value.cols());
  require(heads.value.allFinite(), "position heads: not all values are finite");
  require(heads.weights.allFinite() && heads.share.allFinite() &&
              heads.weights.minCoeff() >= 0.0 && heads.share.minCoeff() >= 0.0,
          "position heads: weights and shares must be finite and at least 0");
}

template <class Real>
PositionHeadsMap<Real>::PositionHeadsMap(const PositionHeads& heads,
                                         Index sequences, int threads)
    : weights_(heads.weights.cast<Real>()),
      width_(heads.width),
      sequences_(sequences),
      threads_(threads) {
  require_sound(heads);
  require(sequences >= 1, "position heads: {} sequences", sequences);
  Matrix value = heads.value;
  const Index k = heads.head_width();
  for (Index h = 0; h < heads.heads(); ++h)
    value.middleCols(h * k, k) *= heads.share[h];
  value_ = value.cast<Real>();
}

template <class Real>
MatrixOf<Real> PositionHeadsMap<Real>::operator()(
    const MatrixOf<Real>& x) const {
  require(x.cols() == value_.rows() && x.rows() % sequences_ == 0,
          "position heads: [{}x{}] tokens of {} sequences, the heads read {} "
          "features",
          x.rows(), x.cols(), sequences_, value_.rows());
  require(x.allFinite(), "position heads: the tokens are not all finite");
  const MatrixOf<Real> v = product(as_is(x), as_is(value_), threads_);
  MatrixOf<Real> y = MatrixOf<Real>::Zero(x.rows(), width_);
  for_heads(x.rows(), [&](Index h, const Rectangle& part) {
    convolve(weights_, h, false, view(v, part), view(y, part));
  });
  return y;
}

// y_i = Σ_t p_t v_{i−t}, v = x V:  gv_j = Σ_t p_t gy_{j+t},  gx = gv Vᵀ
template <class Real>
MatrixOf<Real> PositionHeadsMap<Real>::transposed_at(
    const MatrixOf<Real>& gy) const {
  MatrixOf<Real> gv = MatrixOf<Real>::Zero(gy.rows(), value_.cols());
  for_heads(gy.rows(), [&](Index h, const Rectangle& part) {
    convolve(weights_, h, true, view(gy, part), view(gv, part));
  });
  return product(as_is(std::as_const(gv)), transposed(value_), threads_);
}

template <class Real>
template <class Task>
void PositionHeadsMap<Real>::for_heads(Index rows, const Task& task) const {
  const Index heads = weights_.cols(), k = value_.cols() / heads;
  const Index n = rows / sequences_;
  parallel_for(sequences_ * heads, threads_, [&](Index i) {
    const Index h = i % heads;
    task(h, Rectangle{i / heads * n, h * k, n, k});
  });
}

// the map itself and its transpose, wherever it is taken
template <class Real>
class PositionHeadsMap<Real>::Jacobian final : public LinearOperator<Real> {
 public:
  Jacobian(const PositionHeadsMap& map, Index tokens)
      : map_(map), tokens_(tokens) {}

  Index rows() const override { return tokens_ * map_.width_; }
  Index cols() const override { return tokens_ * map_.value_.rows(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(),
            "position heads: {} numbers for a tangent of {}", v.size(), cols());
    return flatten(map_(unflatten(v, tokens_, map_.value_.rows())));
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    require(u.size() == rows(),
            "position heads: {} numbers for a cotangent of {}", u.size(),
            rows());
    return flatten(map_.transposed_at(unflatten(u, tokens_, map_.width_)));
  }

 private:
  const PositionHeadsMap& map_;
  Index tokens_;
};

template <class Real>
std::unique_ptr<LinearOperator<Real>> PositionHeadsMap<Real>::linearize(
    const MatrixOf<Real>& x) const {
  return std::make_unique<Jacobian>(*this, x.rows());
}

template class PositionHeadsMap<float>;
template class PositionHeadsMap<double>;

}  // namespace lipscope
