#include "lipscope/train/transformer_block.h"

namespace lipscope {

template <class Real>
Residual<Real>::Residual(Layout& layout, const std::string& norm_name,
                         Index width, NormPlace place)
    : place_(place) {
  if (place != NormPlace::none) norm_.emplace(layout, norm_name, width);
}

template <class Real>
TransformerBlock<Real>::TransformerBlock(Layout& layout,
                                         const std::string& name,
                                         const TransformerBlockShape& shape)
    : attention_(layout, name + ".attn", shape.attention),
      around_attention_(layout, name + ".ln_1", shape.attention.width,
                        shape.norm),
      mlp_(layout, name + ".mlp", shape.attention.width, shape.hidden,
           shape.activation, shape.contraction),
      around_mlp_(layout, name + ".ln_2", shape.attention.width, shape.norm) {}

template <class Real>
const MatrixOf<Real>& TransformerBlock<Real>::forward(
    const VectorOf<Real>& weights, const MatrixOf<Real>& x, Index number,
    const Pass& pass) {
  const MatrixOf<Real>& middle = around_attention_.forward(
      weights, x, 2 * number, pass,
      [&](const MatrixOf<Real>& read) -> const MatrixOf<Real>& {
        return attention_.forward(weights, read, pass);
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
  around_attention_.backward(
      weights, gradients, g, 2 * number, pass,
      [&](const MatrixOf<Real>& gy) -> const MatrixOf<Real>& {
        return attention_.backward(weights, gradients, gy, pass);
      });
}

template class Residual<float>;
template class Residual<double>;
template class TransformerBlock<float>;
template class TransformerBlock<double>;

}  // namespace lipscope
