#include "lipscope/train/embedding_layer.h"

namespace lipscope {

template <class Real>
EmbeddingLayer<Real>::EmbeddingLayer(Layout& layout, Index characters,
                                     Index positions, Index width)
    : characters_(layout.add_table("wte.weight", characters, width)) {
  if (positions > 0)
    positions_ = layout.add_table("wpe.weight", positions, width);
}

template <class Real>
MatrixOf<Real> EmbeddingLayer<Real>::forward(const VectorOf<Real>& weights,
                                             std::span<const int> characters,
                                             const Pass& pass) const {
  const ConstView<Real> table = tensor(weights, characters_);
  MatrixOf<Real> x(pass.rows(), characters_.cols);
  for (Index i = 0; i < x.rows(); ++i) {
    x.row(i) = table.row(characters[i]);
    if (positions_.rows > 0)
      x.row(i) += tensor(weights, positions_).row(i % pass.length);
  }
  return x;
}

template <class Real>
void EmbeddingLayer<Real>::backward(VectorOf<Real>& gradients,
                                    std::span<const int> characters,
                                    const MatrixOf<Real>& gx,
                                    const Pass& pass) const {
  // a row of a table is read by many tokens: gE[c] = Σ gx over them
  View<Real> table = tensor(gradients, characters_);
  View<Real> positions = tensor(gradients, positions_);
  table.setZero();
  positions.setZero();
  for (Index i = 0; i < gx.rows(); ++i) {
    table.row(characters[i]) += gx.row(i);
    if (positions_.rows > 0) positions.row(i % pass.length) += gx.row(i);
  }
}

template class EmbeddingLayer<float>;
template class EmbeddingLayer<double>;

}  // namespace lipscope
