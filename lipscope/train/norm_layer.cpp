#include "lipscope/train/norm_layer.h"

#include <cmath>

namespace lipscope {

template <class Real>
NormLayer<Real>::NormLayer(Layout& layout, const std::string& name, Index width,
                           const Initial& gain)
    : gain_(layout.add_row(name + ".weight", width, gain)),
      bias_(layout.add_row(name + ".bias", width, 0.0)) {}

template <class Real>
const MatrixOf<Real>& NormLayer<Real>::forward(const VectorOf<Real>& weights,
                                               const MatrixOf<Real>& x,
                                               int threads) {
  const auto gain = tensor(weights, gain_).row(0);
  const auto bias = tensor(weights, bias_).row(0);
  u_.resize(x.rows(), x.cols());
  y_.resize(x.rows(), x.cols());
  r_.resize(x.rows());
  for_row_pieces(x.rows(), threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      u_.row(i).array() = x.row(i).array() - x.row(i).mean();
      r_[i] = 1 / std::sqrt(u_.row(i).squaredNorm() / x.cols() +
                            static_cast<Real>(epsilon));
      u_.row(i) *= r_[i];
      y_.row(i) = gain.cwiseProduct(u_.row(i)) + bias;
    }
  });
  return y_;
}

template <class Real>
void NormLayer<Real>::backward(const VectorOf<Real>& weights,
                               VectorOf<Real>& gradients, MatrixOf<Real>& gy,
                               int threads) const {
  // y = γ ∘ u + β:  gγ = Σ gy ∘ u,  gβ = Σ gy,  gu = γ ∘ gy. Sums over rows
  // piece by piece, and the pieces in their order
  const auto gain = tensor(weights, gain_).row(0);
  const Index d = gy.cols(), pieces = (gy.rows() + piece_rows - 1) / piece_rows;
  MatrixOf<Real> ggain = MatrixOf<Real>::Zero(pieces, d), gbias = ggain;
  for_row_pieces(gy.rows(), threads, [&](Index begin, Index count) {
    const Index piece = begin / piece_rows;
    for (Index i = begin; i < begin + count; ++i) {
      const auto u = u_.row(i);
      auto g = gy.row(i);
      ggain.row(piece) += g.cwiseProduct(u);
      gbias.row(piece) += g;
      g.array() *= gain.array();
      // u = (x − mean(x)) r:  gx = r (gu − mean(gu) − u ⟨u, gu⟩/d)
      const Real mean = g.mean(), along = g.dot(u) / d;
      g.array() = r_[i] * (g.array() - mean - along * u.array());
    }
  });
  tensor(gradients, gain_).row(0) = ggain.colwise().sum();
  tensor(gradients, bias_).row(0) = gbias.colwise().sum();
}

template class NormLayer<float>;
template class NormLayer<double>;

}  // namespace lipscope
