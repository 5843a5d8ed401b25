#include "lipscope/train/position_heads_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/model/heads_apart.h"
#include "lipscope/train/linear_layer.h"

namespace lipscope {
namespace {

// softmax of each row
template <class Real>
MatrixOf<Real> shares_of(const ConstView<Real>& bias) {
  MatrixOf<Real> p = bias;
  for (Index h = 0; h < p.rows(); ++h) {
    auto row = p.row(h).array();
    row = (row - row.maxCoeff()).exp().eval();
    row /= row.sum();
  }
  return p;
}

// [P]_ij = p_{i−j}, below the diagonal and on it
template <class Real>
MatrixOf<Real> convolution(const MatrixOf<Real>& p, Index head, Index n) {
  MatrixOf<Real> matrix = MatrixOf<Real>::Zero(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) matrix(i, j) = p(head, i - j);
  return matrix;
}

// head h begins with nearly all of its weight, e^b/(e^b + T − 1) ≈ 0.97, on the
// distance h
Initial one_after_another(Index context) {
  const double peak = std::log(32.0 * static_cast<double>(context));
  return {.entry = [peak](Index head, Index distance, double) {
    return head == distance ? peak : 0.0;
  }};
}

// Glorot's, of one head
Initial value_start(Index width, Index head_width) {
  return {.deviation =
              std::sqrt(2.0 / static_cast<double>(width + head_width))};
}

}  // namespace

template <class Real>
PositionHeadsLayer<Real>::PositionHeadsLayer(Layout& layout,
                                             const std::string& name,
                                             PositionHeadsShape shape)
    : shape_(shape) {
  require(shape.heads >= 1 && shape.head_width >= 1 &&
              shape.head_width <= shape.width && shape.context >= 1,
          "position heads: {} heads of {} features, tokens of {}, {} distances",
          shape.heads, shape.head_width, shape.width, shape.context);
  bias_ = layout.add_table(name + ".bias", shape.heads, shape.context,
                           one_after_another(shape.context));
  value_ = layout.add_matrix(
      name + ".v.weight", shape.width, shape.heads * shape.head_width,
      value_start(shape.width, shape.head_width), shape.heads);
}

template <class Real>
void PositionHeadsLayer<Real>::forward(const VectorOf<Real>& weights,
                                       const MatrixOf<Real>& x, View<Real> y,
                                       const Pass& pass) {
  const Index n = pass.length, k = shape_.head_width;
  require(n <= shape_.context, "position heads: {} characters, {} distances", n,
          shape_.context);
  x_ = &x;
  p_ = shares_of(tensor(weights, bias_));
  v_.resize(x.rows(), value_.cols);
  multiply_rows(view(x), as_is(tensor(weights, value_)), view(v_), pass);
  std::vector<MatrixOf<Real>> p(shape_.heads);
  for (Index h = 0; h < shape_.heads; ++h) p[h] = convolution(p_, h, n);
  parallel_for(pass.sequences * shape_.heads, pass.threads, [&](Index i) {
    const Index h = i % shape_.heads;
    const Rectangle part{i / shape_.heads * n, h * k, n, k};
    gemm<Real>(as_is(p[h]), as_is(view(std::as_const(v_), part)),
               view(y, part));
  });
}

template <class Real>
const MatrixOf<Real>& PositionHeadsLayer<Real>::backward(
    const VectorOf<Real>& weights, VectorOf<Real>& gradients,
    const ConstView<Real>& gy, const Pass& pass) {
  const Index n = pass.length, k = shape_.head_width;
  // y = P v:  gv = Pᵀ gy,  gP = gy vᵀ, summed over the sequences
  gv_.resize(gy.rows(), value_.cols);
  View<Real> gbias = tensor(gradients, bias_);
  parallel_for(shape_.heads, pass.threads, [&](Index h) {
    const MatrixOf<Real> p = convolution(p_, h, n);
    MatrixOf<Real> gp = MatrixOf<Real>::Zero(n, n);
    for (Index s = 0; s < pass.sequences; ++s) {
      const Rectangle part{s * n, h * k, n, k};
      gemm<Real>(transposed(p), as_is(view(gy, part)), view(gv_, part));
      gemm<Real>(as_is(view(gy, part)),
                 transposed(view(std::as_const(v_), part)), view(gp),
                 Into::add);
    }
    // [P]_ij = p_{i−j}:  gp_t = Σ_i gP_{i,i−t};  p = softmax(b):  gb = p ∘ (gp
    // − ⟨p, gp⟩)
    VectorOf<Real> g = VectorOf<Real>::Zero(shape_.context);
    for (Index t = 0; t < n; ++t) g[t] = gp.diagonal(-t).sum();
    const auto shares = p_.row(h).transpose();
    const Real mean = shares.dot(g);
    gbias.row(h) = (shares.array() * (g.array() - mean)).matrix().transpose();
  });
  // v = x V:  gV = xᵀ gv,  gx = gv Vᵀ
  product_into<Real>(transposed(view(*x_)), as_is(view(std::as_const(gv_))),
                     tensor(gradients, value_), pass.threads, pass.products);
  gx_.resize(gy.rows(), shape_.width);
  multiply_rows(view(std::as_const(gv_)), transposed(tensor(weights, value_)),
                view(gx_), pass);
  return gx_;
}

template <class Real>
Matrix PositionHeadsLayer<Real>::exported_weights(
    const VectorOf<Real>& weights) const {
  return distance_weights(tensor(weights, bias_).template cast<double>());
}

template <class Real>
Matrix PositionHeadsLayer<Real>::value(const VectorOf<Real>& weights) const {
  return tensor(weights, value_).template cast<double>();
}

template class PositionHeadsLayer<float>;
template class PositionHeadsLayer<double>;

}  // namespace lipscope
