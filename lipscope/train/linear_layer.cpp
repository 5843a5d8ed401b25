#include "lipscope/train/linear_layer.h"

#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
LinearLayer<Real>::LinearLayer(Layout& layout, const std::string& name,
                               Index in, Index out, bool bias)
    : weight_(layout.add_matrix(name + ".weight", in, out)) {
  if (bias) bias_ = layout.add_row(name + ".bias", out, 0.0);
}

template <class Real>
void LinearLayer<Real>::forward(const VectorOf<Real>& weights,
                                const ConstView<Real>& x, View<Real> y,
                                int threads) const {
  const ConstView<Real> w = tensor(weights, weight_);
  for_row_pieces(x.rows(), threads, [&](Index begin, Index count) {
    View<Real> part = view(y, {begin, 0, count, y.cols()});
    gemm<Real>(as_is(view(x, {begin, 0, count, x.cols()})), as_is(w), part);
    if (bias_.rows > 0) part.rowwise() += tensor(weights, bias_).row(0);
  });
}

template <class Real>
void LinearLayer<Real>::backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const ConstView<Real>& x,
                                 const ConstView<Real>& gy, View<Real> gx,
                                 int threads) const {
  backward_weights(gradients, x, gy, threads);
  // y = x W + b:  gx = gy Wᵀ
  const ConstView<Real> w = tensor(weights, weight_);
  for_row_pieces(x.rows(), threads, [&](Index begin, Index count) {
    gemm<Real>(as_is(view(gy, {begin, 0, count, gy.cols()})), transposed(w),
               view(gx, {begin, 0, count, gx.cols()}));
  });
}

template <class Real>
void LinearLayer<Real>::backward_weights(VectorOf<Real>& gradients,
                                         const ConstView<Real>& x,
                                         const ConstView<Real>& gy,
                                         int threads) const {
  // y = x W + b:  gW = xᵀ gy,  gb = Σ gy
  product_into<Real>(transposed(x), as_is(gy), tensor(gradients, weight_),
                     threads);
  if (bias_.rows == 0) return;
  const Index pieces = (gy.rows() + piece_rows - 1) / piece_rows;
  MatrixOf<Real> sums = MatrixOf<Real>::Zero(pieces, gy.cols());
  for_row_pieces(gy.rows(), threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i)
      sums.row(begin / piece_rows) += gy.row(i);
  });
  tensor(gradients, bias_).row(0) = sums.colwise().sum();
}

template class LinearLayer<float>;
template class LinearLayer<double>;

}  // namespace lipscope
