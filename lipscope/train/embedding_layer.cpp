#include "lipscope/train/embedding_layer.h"

namespace lipscope {

template <class Real>
EmbeddingLayer<Real>::EmbeddingLayer(Layout& layout, Index characters,
                                     Index positions, Index width,
                                     const std::optional<Initial>& start)
    : characters_(layout.add_table("wte.weight", characters, width,
                                   start ? *start
                                   : positions > 0
                                       ? characters_beside_places(width)
                                       : Initial{.deviation = 0.1})) {
  if (positions > 0)
    positions_ = layout.add_table("wpe.weight", positions, width, waves(width));
}

template <class Real>
MatrixOf<Real> EmbeddingLayer<Real>::forward(const VectorOf<Real>& weights,
                                             std::span<const int> characters,
                                             const Pass& pass) const {
  const ConstView<Real> table = tensor(weights, characters_);
  MatrixOf<Real> x(pass.rows(), characters_.cols);
  for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      x.row(i) = table.row(characters[i]);
      if (positions_.rows > 0)
        x.row(i) += tensor(weights, positions_).row(i % pass.length);
    }
  });
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
  constexpr Index columns = 64;  // whose sums are made together
  parallel_for((gx.cols() + columns - 1) / columns, pass.threads, [&](Index p) {
    const Index first = p * columns,
                count = std::min(columns, gx.cols() - first);
    for (Index i = 0; i < gx.rows(); ++i) {
      const auto g = gx.row(i).segment(first, count);
      table.row(characters[i]).segment(first, count) += g;
      if (positions_.rows > 0)
        positions.row(i % pass.length).segment(first, count) += g;
    }
  });
}

template class EmbeddingLayer<float>;
template class EmbeddingLayer<double>;

}  // namespace lipscope
