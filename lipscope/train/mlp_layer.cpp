#include "lipscope/train/mlp_layer.h"

#include <utility>

#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
MlpLayer<Real>::MlpLayer(Layout& layout, const std::string& name, Index width,
                         Index hidden, Activation activation)
    : up_(layout, name + ".up", width, hidden, true),
      down_(layout, name + ".down", hidden, width, true),
      activation_(activation) {}

template <class Real>
const MatrixOf<Real>& MlpLayer<Real>::forward(const VectorOf<Real>& weights,
                                              const MatrixOf<Real>& x,
                                              const Pass& pass) {
  const Index n = x.rows(), hidden = up_.weight().cols;
  const RightFactor<Real> up(as_is(tensor(weights, up_.weight())),
                             pass.products);
  const RightFactor<Real> down(as_is(tensor(weights, down_.weight())),
                               pass.products);
  x_ = &x;
  a_.resize(n, hidden);
  slope_.resize(n, hidden);
  y_.resize(n, down_.weight().cols);
  for_row_pieces(n, pass.threads, [&](Index begin, Index count) {
    View<Real> a = view(a_, {begin, 0, count, hidden});
    View<Real> y = view(y_, {begin, 0, count, y_.cols()});
    gemm<Real>(as_is(view(x, {begin, 0, count, x.cols()})), up, a);
    a.rowwise() += tensor(weights, up_.bias()).row(0);
    // a and its derivative come from the same exponentials
    activate_with_slopes<Real>(
        activation_, {a.data(), static_cast<std::size_t>(a.size())},
        {slope_.data() + begin * hidden, static_cast<std::size_t>(a.size())});
    gemm<Real>(as_is(read_only(a)), down, y);
    y.rowwise() += tensor(weights, down_.bias()).row(0);
  });
  return y_;
}

template <class Real>
const MatrixOf<Real>& MlpLayer<Real>::backward(const VectorOf<Real>& weights,
                                               VectorOf<Real>& gradients,
                                               const MatrixOf<Real>& gy,
                                               const Pass& pass) {
  const Index n = gy.rows(), hidden = a_.cols();
  const RightFactor<Real> up(transposed(tensor(weights, up_.weight())),
                             pass.products);
  const RightFactor<Real> down(transposed(tensor(weights, down_.weight())),
                               pass.products);
  gh_.resize(n, hidden);
  gx_.resize(n, up_.weight().rows);
  for_row_pieces(n, pass.threads, [&](Index begin, Index count) {
    View<Real> gh = view(gh_, {begin, 0, count, hidden});
    // y = a W_down + b:  ga = gy W_downᵀ
    gemm<Real>(as_is(view(gy, {begin, 0, count, gy.cols()})), down, gh);
    // a = act(h):  gh = ga ∘ act'(h)
    gh.array() *= slope_.middleRows(begin, count).array();
    // h = x W_up + b:  gx = gh W_upᵀ
    gemm<Real>(as_is(read_only(gh)), up,
               view(gx_, {begin, 0, count, gx_.cols()}));
  });
  down_.backward_weights(gradients, view(std::as_const(a_)), view(gy), pass);
  up_.backward_weights(gradients, view(*x_), view(std::as_const(gh_)), pass);
  return gx_;
}

template class MlpLayer<float>;
template class MlpLayer<double>;

}  // namespace lipscope
