#include "lipscope/train/transformer_block.h"

#include "lipscope/train/quiet_start.h"

namespace lipscope {

template <class Real>
Residual<Real>::Residual(Layout& layout, const std::string& norm_name,
                         const TransformerBlockShape& shape,
                         const Initial& gain)
    : carry_(shape.join == Join::add ? 1
             : shape.join == Join::none
                 ? 0
                 : static_cast<Real>(1 - shape.join_share)),
      share_(shape.join == Join::convex ? static_cast<Real>(shape.join_share)
                                        : 1),
      place_(shape.norm) {
  if (place_ != NormPlace::none)
    norm_.emplace(layout, norm_name, shape.mixing.attention.width, gain);
}

namespace {

// of the norms of attention and MLP: 1 everywhere, but for quiet coordinates of
// a post-norm block
Initial gain_of(const TransformerBlockShape& s, double quiet) {
  if (!s.quiet_gain || s.norm != NormPlace::post) return {.mean = 1.0};
  return quiet_gains(s.mixing.attention.width, quiet);
}

// of W_down in a pre-norm block
double size_of_mlp(const TransformerBlockShape& s) {
  return s.quiet_gain && s.norm == NormPlace::pre ? 1.0 / *s.quiet_gain : 1.0;
}

}  // namespace

template <class Real>
TransformerBlock<Real>::TransformerBlock(Layout& layout,
                                         const std::string& name,
                                         const TransformerBlockShape& shape)
    : mixing_(layout, name + ".attn", shape.mixing),
      around_mixing_(layout, name + ".ln_1", shape,
                     gain_of(shape, shape.quiet_gain.value_or(1.0))),
      mlp_(layout, name + ".mlp", shape.mixing.attention.width, shape.hidden,
           shape.activation, shape.contraction, size_of_mlp(shape)),
      around_mlp_(layout, name + ".ln_2", shape,
                  gain_of(shape, 1.0 / shape.quiet_gain.value_or(1.0))) {}

template <class Real>
const MatrixOf<Real>& TransformerBlock<Real>::forward(
    const VectorOf<Real>& weights, const MatrixOf<Real>& x, Index number,
    const Pass& pass) {
  const MatrixOf<Real>& middle = around_mixing_.forward(
      weights, x, 2 * number, pass,
      [&](const MatrixOf<Real>& read) -> const MatrixOf<Real>& {
        return mixing_.forward(weights, read, pass);
      });
  return around_mlp_.forward(
      weights, middle, 2 * number + 1, pass,
      [&](const MatrixOf<Real>& read) -> const MatrixOf<Real>& {
        return mlp_.forward(weights, read, pass);
      });
}

template <class Real>
void TransformerBlock<Real>::backward(const VectorOf<Real>& weights,
                                      VectorOf<Real>& gradients,
                                      MatrixOf<Real>& g, Index number,
                                      const Pass& pass) {
  around_mlp_.backward(weights, gradients, g, 2 * number + 1, pass,
                       [&](const MatrixOf<Real>& gy) -> const MatrixOf<Real>& {
                         return mlp_.backward(weights, gradients, gy, pass);
                       });
  around_mixing_.backward(
      weights, gradients, g, 2 * number, pass,
      [&](const MatrixOf<Real>& gy) -> const MatrixOf<Real>& {
        return mixing_.backward(weights, gradients, gy, pass);
      });
}

template class Residual<float>;
template class Residual<double>;
template class TransformerBlock<float>;
template class TransformerBlock<double>;

}  // namespace lipscope
