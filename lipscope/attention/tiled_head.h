#pragma once

#include <vector>

#include "lipscope/attention/head.h"
#include "lipscope/core/gemm.h"

namespace lipscope {

/// Features as rectangles of larger matrices, to read or to write into; these
/// matrices must outlive the views.
template <class Real>
struct ConstHeadViews {
  ConstView<Real> q, k, v;
};
template <class Real>
struct HeadViews {
  View<Real> q, k, v;
};

template <class Real>
ConstHeadViews<Real> view(const HeadFeatures<Real>& f) {
  return {view(f.q), view(f.k), view(f.v)};
}
template <class Real>
HeadViews<Real> view(HeadFeatures<Real>& f) {
  return {view(f.q), view(f.k), view(f.v)};
}

/// One head at a point, as HeadState is, for speed and length: the rows of P
/// are visited in tiles that stay in cache, what the mask hides from all of
/// a tile is never touched, and P is either kept or rebuilt tile by tile from
/// q, k and two numbers for each row, so that no n² memory is needed.
///
/// Everything runs on the calling thread. It agrees with head.h to rounding.
template <class Real>
class TiledHead {
 public:
  enum class Keep { weights, nothing };  ///< P, or what rebuilds it

  TiledHead(HeadFeatures<Real> at, Weighting weighting, Keep keep,
            Precision products = Precision::full);

  const HeadFeatures<Real>& at() const { return at_; }

  MatrixOf<Real> value() const;  ///< y = P v [n×w]

  /// What all tokens' queries moving by dq do to y, averaged over its rows:
  /// dq C, where for a softmax C [k×w] is the mean over i of the covariance of
  /// keys and values under P_i, C_i = Σ_j P_ij k_jᵀ v_j − k̄_iᵀ y_i.
  MatrixOf<Real> mean_covariance() const;

  /// Into dy [n×w], when the features move by d.
  void tangent(const ConstHeadViews<Real>& d, View<Real> dy) const;

  /// The lines of tangent, transposed and in reverse, into g.
  void cotangent(const ConstView<Real>& gy, HeadViews<Real> g) const;

  /// The same, and into `gby_distance` the gradient by what is added to scores
  /// by distance (Weighting::by_distance): Σ_i gS_i,i+t for each t.
  void cotangent(const ConstView<Real>& gy, HeadViews<Real> g,
                 Vector& gby_distance) const;

  /// How many numbers Keep::weights keeps of P, for n tokens.
  static Index weights_kept(Index n, const Weighting& weighting);

 private:
  struct Tile;  // rows [begin, begin + rows) of P, and the columns they see

  static std::vector<Tile> tiles(Index n, const Weighting& weighting);
  MatrixOf<Real> scores(const Tile& tile) const;
  ConstView<Real> weights(const Tile& tile, MatrixOf<Real>& scratch) const;
  void weigh(const Tile& tile, MatrixOf<Real>& scores) const;
  void differentiate(const Tile& tile, const ConstView<Real>& p,
                     MatrixOf<Real>& t) const;
  void cotangent(const ConstView<Real>& gy, HeadViews<Real> g,
                 Vector* gby_distance) const;

  HeadFeatures<Real> at_;
  Weighting weighting_;
  // of each row of scores, for a softmax: the largest, and 1/Σ exp(s −
  // largest). Their log-sum-exp in one number would lose what large scores
  // round away
  VectorOf<Real> largest_, shares_;
  std::vector<MatrixOf<Real>> kept_;  // P, tile by tile, or nothing
  Precision products_;
};

}  // namespace lipscope
