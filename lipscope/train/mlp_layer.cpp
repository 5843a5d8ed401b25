#include "lipscope/train/mlp_layer.h"

#include <utility>

#include "lipscope/core/gemm.h"
#include "lipscope/model/max_min.h"

namespace lipscope {

template <class Real>
MlpLayer<Real>::MlpLayer(Layout& layout, const std::string& name, Index width,
                         Index hidden, Activation activation,
                         std::optional<double> contraction, double size)
    : up_(layout, name + ".up", width, hidden, true),
      down_(layout, name + ".down", hidden, width, true, size),
      activation_(activation),
      contraction_(contraction) {}

template <class Real>
ConstMlpViews<Real> MlpLayer<Real>::views(const VectorOf<Real>& weights) const {
  return {tensor(weights, up_.weight()), tensor(weights, down_.weight())};
}

// what activations are multiplied with
template <class Real>
ConstView<Real> MlpLayer<Real>::down(const VectorOf<Real>& weights) const {
  return contraction_ ? view(scaled_down_) : tensor(weights, down_.weight());
}

template <class Real>
const MatrixOf<Real>& MlpLayer<Real>::forward(const VectorOf<Real>& weights,
                                              const MatrixOf<Real>& x,
                                              const Pass& pass) {
  const Index n = x.rows(), hidden = up_.weight().cols;
  if (contraction_) {
    scale_ = *contraction_ / mlp_contraction(views(weights), activation_);
    scaled_down_ = static_cast<Real>(scale_) * views(weights).down;
  }
  const RightFactor<Real> up(as_is(tensor(weights, up_.weight())),
                             pass.products);
  const RightFactor<Real> down(as_is(this->down(weights)), pass.products);
  x_ = &x;
  a_.resize(n, hidden);
  slope_.resize(n, activation_ == Activation::max_min ? hidden / 2 : hidden);
  y_.resize(n, down_.weight().cols);
  for_row_pieces(n, pass.threads, [&](Index begin, Index count) {
    View<Real> a = view(a_, {begin, 0, count, hidden});
    View<Real> y = view(y_, {begin, 0, count, y_.cols()});
    gemm<Real>(as_is(view(x, {begin, 0, count, x.cols()})), up, a);
    a.rowwise() += tensor(weights, up_.bias()).row(0);
    if (activation_ == Activation::max_min)
      sort_pairs(a, view(slope_, {begin, 0, count, slope_.cols()}));
    else  // a and its derivative come from the same exponentials
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
  const RightFactor<Real> down(transposed(this->down(weights)), pass.products);
  gh_.resize(n, hidden);
  gx_.resize(n, up_.weight().rows);
  for_row_pieces(n, pass.threads, [&](Index begin, Index count) {
    View<Real> gh = view(gh_, {begin, 0, count, hidden});
    // y = a W_down + b:  ga = gy W_downᵀ
    gemm<Real>(as_is(view(gy, {begin, 0, count, gy.cols()})), down, gh);
    // a = act(h):  gh = ga ∘ act'(h), or ga with its pairs swapped
    if (activation_ == Activation::max_min)
      swap_pairs(gh,
                 view(std::as_const(slope_), {begin, 0, count, slope_.cols()}));
    else
      gh.array() *= slope_.middleRows(begin, count).array();
    // h = x W_up + b:  gx = gh W_upᵀ
    gemm<Real>(as_is(read_only(gh)), up,
               view(gx_, {begin, 0, count, gx_.cols()}));
  });
  down_.backward_weights(gradients, view(std::as_const(a_)), view(gy), pass);
  up_.backward_weights(gradients, view(*x_), view(std::as_const(gh_)), pass);
  if (contraction_) contraction_gradient(weights, gradients);
  return gx_;
}

// The slot of W_down holds gE, E = s W_down:  gs = ⟨gE, W_down⟩, gW_down = s
// gE, and s = c/D:  gD = −gs s/D
template <class Real>
void MlpLayer<Real>::contraction_gradient(const VectorOf<Real>& weights,
                                          VectorOf<Real>& gradients) const {
  const ConstMlpViews<Real> w = views(weights);
  MlpViews<Real> g{tensor(gradients, up_.weight()),
                   tensor(gradients, down_.weight())};
  const double gscale =
      g.down.cwiseProduct(w.down).template cast<double>().sum();
  g.down *= static_cast<Real>(scale_);
  mlp_contraction_backward(w, activation_,
                           -gscale * scale_ * scale_ / *contraction_, g);
}

template class MlpLayer<float>;
template class MlpLayer<double>;

}  // namespace lipscope
