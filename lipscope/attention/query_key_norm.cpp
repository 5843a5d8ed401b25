#include "lipscope/attention/query_key_norm.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {

void require_normable(const QueryKeyNorm& norm, const AttentionWeights& weights,
                      Kind kind, Index chosen) {
  require(!kind_of(kind).tied,
          "attention: q/k-norm with {} attention, which is tied",
          name_of(kind));
  require(!norm.over_heads || chosen == weights.heads,
          "attention: q/k-norm over all heads, of which {} are chosen", chosen);
  const Index k = weights.query_width();
  const Index queries = norm.over_heads ? weights.heads * k : k;
  const Index keys = norm.over_heads ? weights.groups() * k : k;
  require(norm.query_gain.size() == queries && norm.key_gain.size() == keys,
          "attention: q/k-norm of {} and {} features for {} heads of {}",
          norm.query_gain.size(), norm.key_gain.size(), weights.heads, k);
}

template <class Real>
BlockNorm<Real>::BlockNorm(MatrixOf<Real>& projected, const Place& place,
                           VectorOf<Real> gain, Real epsilon)
    : place_(place),
      gain_(std::move(gain)),
      u_(projected.middleCols(place.first, place.blocks * place.width)),
      shrink_(projected.rows(), place.blocks) {
  require(gain_.size() == u_.cols(), "q/k-norm: {} gains for {} features",
          gain_.size(), u_.cols());
  const Real D = static_cast<Real>(place_.width);
  for (Index i = 0; i < u_.rows(); ++i)
    for (Index b = 0; b < place_.blocks; ++b) {
      auto z = u_.row(i).segment(b * place_.width, place_.width);
      const Real s = 1 / std::sqrt(z.squaredNorm() / D + epsilon);
      if (!std::isfinite(s) || s == 0)
        throw RunError("q/k-norm: queries or keys overflow");
      shrink_(i, b) = s;
      z *= s;
    }
  projected.middleCols(place.first, u_.cols()) = u_ * gain_.asDiagonal();
}

template <class Real>
void BlockNorm<Real>::tangent(MatrixOf<Real>& d, Index row, Index from,
                              Index rows) const {
  const Real D = static_cast<Real>(place_.width);
  for (Index i = 0; i < rows; ++i)
    for (Index b = 0; b < place_.blocks; ++b) {
      const Index at = b * place_.width;
      auto t = d.row(row + i).segment(place_.first + at, place_.width);
      const auto u = u_.row(from + i).segment(at, place_.width);
      t -= u * (u.dot(t) / D);
      t.array() *= shrink_(from + i, b) *
                   gain_.segment(at, place_.width).transpose().array();
    }
}

template <class Real>
void BlockNorm<Real>::cotangent(MatrixOf<Real>& g, Index row, Index from,
                                Index rows) const {
  const Real D = static_cast<Real>(place_.width);
  for (Index i = 0; i < rows; ++i)
    for (Index b = 0; b < place_.blocks; ++b) {
      const Index at = b * place_.width;
      auto t = g.row(row + i).segment(place_.first + at, place_.width);
      const auto u = u_.row(from + i).segment(at, place_.width);
      t.array() *= shrink_(from + i, b) *
                   gain_.segment(at, place_.width).transpose().array();
      t -= u * (u.dot(t) / D);
    }
}

template <class Real>
void BlockNorm<Real>::add_bend(const MatrixOf<Real>& d,
                               const MatrixOf<Real>& gd,
                               MatrixOf<Real>& g) const {
  using Row = Eigen::Matrix<Real, 1, Eigen::Dynamic>;
  const Real D = static_cast<Real>(place_.width);
  for (Index i = 0; i < u_.rows(); ++i)
    for (Index b = 0; b < place_.blocks; ++b) {
      const Index at = b * place_.width, in = place_.first + at;
      const Row u = u_.row(i).segment(at, place_.width);
      const Row t = d.row(i).segment(in, place_.width);
      const Row w =
          gd.row(i)
              .segment(in, place_.width)
              .cwiseProduct(gain_.segment(at, place_.width).transpose());
      const Real ut = u.dot(t), wu = w.dot(u), wt = w.dot(t);
      const Real s = shrink_(i, b);
      g.row(i).segment(in, place_.width) +=
          (s * s / D) * (-u * wt - t * wu - w * ut + u * (3 * ut * wu / D));
    }
}

template class BlockNorm<float>;
template class BlockNorm<double>;

}  // namespace lipscope
