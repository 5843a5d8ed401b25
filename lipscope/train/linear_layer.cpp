#include "lipscope/train/linear_layer.h"

#include <cmath>

#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
void multiply_rows(const ConstView<Real>& x, const Factor<Real>& w,
                   View<Real> y, const Pass& pass) {
  const RightFactor<Real> ready(w, pass.products);
  for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
    gemm<Real>(as_is(view(x, {begin, 0, count, x.cols()})), ready,
               view(y, {begin, 0, count, y.cols()}));
  });
}

template <class Real>
LinearLayer<Real>::LinearLayer(Layout& layout, const std::string& name,
                               Index in, Index out, bool bias, double size)
    : weight_(layout.add_matrix(
          name + ".weight", in, out,
          {.deviation =
               size * std::sqrt(2.0 / static_cast<double>(in + out))})) {
  if (bias) bias_ = layout.add_row(name + ".bias", out, 0.0);
}

template <class Real>
void LinearLayer<Real>::forward(const VectorOf<Real>& weights,
                                const ConstView<Real>& x, View<Real> y,
                                const Pass& pass) const {
  const RightFactor<Real> w(as_is(tensor(weights, weight_)), pass.products);
  for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
    View<Real> part = view(y, {begin, 0, count, y.cols()});
    gemm<Real>(as_is(view(x, {begin, 0, count, x.cols()})), w, part);
    if (bias_.rows > 0) part.rowwise() += tensor(weights, bias_).row(0);
  });
}

template <class Real>
void LinearLayer<Real>::backward(const VectorOf<Real>& weights,
                                 VectorOf<Real>& gradients,
                                 const ConstView<Real>& x,
                                 const ConstView<Real>& gy, View<Real> gx,
                                 const Pass& pass) const {
  backward_weights(gradients, x, gy, pass);
  // y = x W + b:  gx = gy Wᵀ
  multiply_rows(gy, transposed(tensor(weights, weight_)), gx, pass);
}

template <class Real>
void LinearLayer<Real>::backward_weights(VectorOf<Real>& gradients,
                                         const ConstView<Real>& x,
                                         const ConstView<Real>& gy,
                                         const Pass& pass) const {
  // y = x W + b:  gW = xᵀ gy,  gb = Σ gy
  product_into<Real>(transposed(x), as_is(gy), tensor(gradients, weight_),
                     pass.threads, pass.products);
  if (bias_.rows == 0) return;
  const Index pieces = (gy.rows() + piece_rows - 1) / piece_rows;
  MatrixOf<Real> sums = MatrixOf<Real>::Zero(pieces, gy.cols());
  for_row_pieces(gy.rows(), pass.threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i)
      sums.row(begin / piece_rows) += gy.row(i);
  });
  tensor(gradients, bias_).row(0) = sums.colwise().sum();
}

template void multiply_rows(const ConstView<float>&, const Factor<float>&,
                            View<float>, const Pass&);
template void multiply_rows(const ConstView<double>&, const Factor<double>&,
                            View<double>, const Pass&);
template class LinearLayer<float>;
template class LinearLayer<double>;

}  // namespace lipscope
