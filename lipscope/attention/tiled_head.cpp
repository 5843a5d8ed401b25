#include "lipscope/attention/tiled_head.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/sigmoid.h"
#include "lipscope/core/errors.h"

namespace lipscope {
template <class Real>
struct TiledHead<Real>::Tile {
  Index begin, rows, first, cols;

  Rectangle of_rows(Index width) const { return {begin, 0, rows, width}; }
  Rectangle of_seen(Index width) const { return {first, 0, cols, width}; }
};

// Every product with a tile reads all keys or values that the tile sees, and
// lays them ready first: the more rows a tile has, the fewer times. With 128
// that is a small share of the work, and 128 rows of 4,096 tokens (2 MB) still
// come from a cache. Under a narrow window most of a high tile would be hidden.
template <class Real>
auto TiledHead<Real>::tiles(Index n, const Weighting& weighting)
    -> std::vector<Tile> {
  constexpr Index least = 32, most = 128;
  const Index height =
      std::clamp(weighting.mask.window.value_or(most), least, most);
  std::vector<Tile> all;
  for (Index i = 0; i < n; i += height) {
    const Index rows = std::min(height, n - i);
    TokenRange seen = weighting.visible(i, n);
    for (Index r = 1; r < rows; ++r) {
      const TokenRange row = weighting.visible(i + r, n);
      seen = {std::min(seen.begin, row.begin), std::max(seen.end, row.end)};
    }
    all.push_back({i, rows, seen.begin, seen.size()});
  }
  return all;
}

template <class Real>
Index TiledHead<Real>::weights_kept(Index n, const Weighting& weighting) {
  Index numbers = 0;
  for (const Tile& t : tiles(n, weighting)) numbers += t.rows * t.cols;
  return numbers;
}

// S = q kᵀ on the tile, with what the keys' masses and distances add
template <class Real>
MatrixOf<Real> TiledHead<Real>::scores(const Tile& t) const {
  MatrixOf<Real> s(t.rows, t.cols);
  gemm<Real>(as_is(view(at_.q, t.of_rows(at_.q.cols()))),
             transposed(view(at_.k, t.of_seen(at_.k.cols()))), view(s),
             Into::overwrite, products_);
  if (weighting_.log_mass.size() > 0)
    s.rowwise() += weighting_.log_mass.segment(t.first, t.cols)
                       .transpose()
                       .template cast<Real>();
  if (weighting_.by_distance.size() > 0)
    for (Index r = 0; r < t.rows; ++r)
      s.row(r) +=
          weighting_.by_distance
              .segment(at_.q.rows() - 1 - (t.begin + r) + t.first, t.cols)
              .transpose()
              .template cast<Real>();
  return s;
}

template <class Real>
TiledHead<Real>::TiledHead(HeadFeatures<Real> at, Weighting weighting,
                           Keep keep, Precision products)
    : at_(std::move(at)),
      weighting_(std::move(weighting)),
      largest_(at_.q.rows()),
      shares_(at_.q.rows()),
      products_(products) {
  const Index n = at_.q.rows();
  for (const Tile& t : tiles(n, weighting_)) {
    MatrixOf<Real> p = scores(t);
    for (Index r = 0; r < t.rows; ++r) {
      const TokenRange range = weighting_.visible(t.begin + r, n);
      const auto seen = p.row(r).segment(range.begin - t.first, range.size());
      const Real largest = seen.maxCoeff();
      if (!std::isfinite(largest) || !std::isfinite(seen.sum()))
        throw RunError(
            "attention: the scores overflow; the tokens are too large");
      largest_[t.begin + r] = largest;
      shares_[t.begin + r] = 1 / (seen.array() - largest).exp().sum();
    }
    if (keep == Keep::nothing) continue;
    weigh(t, p);
    kept_.push_back(std::move(p));
  }
}

template <class Real>
MatrixOf<Real> TiledHead<Real>::value() const {
  MatrixOf<Real> y(at_.v.rows(), at_.v.cols()), scratch;
  for (const Tile& t : tiles(at_.q.rows(), weighting_))
    gemm<Real>(as_is(weights(t, scratch)),
               as_is(view(at_.v, t.of_seen(at_.v.cols()))),
               view(y, t.of_rows(y.cols())), Into::overwrite, products_);
  return y;
}

template <class Real>
MatrixOf<Real> TiledHead<Real>::mean_covariance() const {
  const Index n = at_.q.rows(), m = at_.k.cols(), w = at_.v.cols();
  MatrixOf<Real> both(n, m + w), means, scratch;
  both << at_.k, at_.v;
  MatrixOf<Real> c = MatrixOf<Real>::Zero(m, w);
  VectorOf<Real> seen = VectorOf<Real>::Zero(n);  // Σ_i P_ij
  for (const Tile& t : tiles(n, weighting_)) {
    const ConstView<Real> p = weights(t, scratch);
    seen.segment(t.first, t.cols) += p.colwise().sum().transpose();
    means.resize(t.rows, m + w);  // k̄ and y
    gemm<Real>(as_is(p), as_is(view(std::as_const(both), t.of_seen(m + w))),
               view(means), Into::overwrite, products_);
    c.noalias() -= means.leftCols(m).transpose() * means.rightCols(w);
  }
  c.noalias() += at_.k.transpose() * (seen.asDiagonal() * at_.v);
  return c / static_cast<Real>(n);
}

// S ↦ P on the tile: exp(S − largest)/Σ, or σ(S + b); hidden entries exactly 0
template <class Real>
void TiledHead<Real>::weigh(const Tile& t, MatrixOf<Real>& s) const {
  const std::optional<double> shift = weighting_.sigmoid_shift;
  for (Index r = 0; r < t.rows; ++r) {
    const TokenRange range = weighting_.visible(t.begin + r, at_.q.rows());
    auto seen = s.row(r).segment(range.begin - t.first, range.size());
    if (shift)
      seen.array() =
          1 / (1 + (static_cast<Real>(-*shift) - seen.array()).exp());
    else
      seen.array() =
          (seen.array() - largest_[t.begin + r]).exp() * shares_[t.begin + r];
    s.row(r).head(range.begin - t.first).setZero();
    s.row(r).tail(t.first + t.cols - range.end).setZero();
  }
}

// P on the tile: kept, or rebuilt in `scratch`
template <class Real>
ConstView<Real> TiledHead<Real>::weights(const Tile& t,
                                         MatrixOf<Real>& scratch) const {
  if (!kept_.empty()) {
    const Index height = kept_.front().rows();
    return view(std::as_const(kept_[t.begin / height]));
  }
  scratch = scores(t);
  weigh(t, scratch);
  return view(std::as_const(scratch));
}

// t ↦ P' t row by row, the symmetric derivative of the weights at P; of a
// sigmoid at its scores (sigmoid_slope)
template <class Real>
void TiledHead<Real>::differentiate(const Tile& tile, const ConstView<Real>& p,
                                    MatrixOf<Real>& t) const {
  if (weighting_.sigmoid_shift) {
    MatrixOf<Real> s = scores(tile);
    const Real shift = static_cast<Real>(*weighting_.sigmoid_shift);
    for (Index r = 0; r < t.rows(); ++r) {
      s.row(r).array() += shift;
      // P is 0 where it is hidden, and where its slope is 0 as well
      t.row(r).array() =
          (p.row(r).array() > 0)
              .select(t.row(r).array() * sigmoid_slope(s.row(r).array()),
                      Real{0});
    }
    return;
  }
  for (Index r = 0; r < t.rows(); ++r) {
    const Real mean = p.row(r).dot(t.row(r));
    t.row(r).array() = p.row(r).array() * (t.row(r).array() - mean);
  }
}

template <class Real>
void TiledHead<Real>::tangent(const ConstHeadViews<Real>& d,
                              View<Real> dy) const {
  const Index n = at_.q.rows(), m = at_.q.cols();
  // dS = dq kᵀ + q dkᵀ is one product, [dq q] [k dk]ᵀ
  MatrixOf<Real> left, right(n, 2 * m);
  right << at_.k, d.k;

  MatrixOf<Real> ds, scratch;
  for (const Tile& t : tiles(n, weighting_)) {
    left.resize(t.rows, 2 * m);
    left << d.q.middleRows(t.begin, t.rows), at_.q.middleRows(t.begin, t.rows);
    ds.resize(t.rows, t.cols);
    gemm<Real>(as_is(view(std::as_const(left))),
               transposed(view(std::as_const(right), t.of_seen(2 * m))),
               view(ds), Into::overwrite, products_);
    const ConstView<Real> p = weights(t, scratch);
    // dP = P ∘ (dS − ⟨P, dS⟩), or P ∘ (1 − P) ∘ dS; P is 0 where it is hidden
    differentiate(t, p, ds);
    // dy = dP v + P dv
    const View<Real> out = view(dy, t.of_rows(dy.cols()));
    gemm<Real>(as_is(ds), as_is(view(at_.v, t.of_seen(at_.v.cols()))), out,
               Into::overwrite, products_);
    gemm<Real>(as_is(p), as_is(view(d.v, t.of_seen(d.v.cols()))), out,
               Into::add, products_);
  }
}

template <class Real>
void TiledHead<Real>::cotangent(const ConstView<Real>& gy,
                                HeadViews<Real> g) const {
  cotangent(gy, std::move(g), nullptr);
}

template <class Real>
void TiledHead<Real>::cotangent(const ConstView<Real>& gy, HeadViews<Real> g,
                                Vector& gby_distance) const {
  gby_distance.setZero(2 * at_.q.rows() - 1);
  cotangent(gy, std::move(g), &gby_distance);
}

template <class Real>
void TiledHead<Real>::cotangent(const ConstView<Real>& gy, HeadViews<Real> g,
                                Vector* gby_distance) const {
  const Index n = at_.q.rows(), m = at_.q.cols(), w = at_.v.cols();
  const std::vector<Tile> all = tiles(n, weighting_);
  // what the first tile does not see of k and v, later ones add to
  const Index before = all.front().first;
  const Index after = n - before - all.front().cols;
  for (View<Real>* const of : {&g.k, &g.v}) {
    of->topRows(before).setZero();
    of->bottomRows(after).setZero();
  }
  MatrixOf<Real> gs, scratch;
  for (const Tile& t : all) {
    const Into into = t.begin == 0 ? Into::overwrite : Into::add;
    const ConstView<Real> gy_tile = view(gy, t.of_rows(w));
    gs.resize(t.rows, t.cols);
    gemm<Real>(as_is(gy_tile), transposed(view(at_.v, t.of_seen(w))), view(gs),
               Into::overwrite, products_);
    const ConstView<Real> p = weights(t, scratch);
    // gS = P ∘ (gP − ⟨P, gP⟩), or P ∘ (1 − P) ∘ gP. The mean is also ⟨gy, y⟩,
    // but taken from another sum it would not cancel what rounding left here
    differentiate(t, p, gs);
    if (gby_distance != nullptr)
      for (Index r = 0; r < t.rows; ++r)
        gby_distance->segment(n - 1 - (t.begin + r) + t.first, t.cols) +=
            gs.row(r).transpose().template cast<double>();
    gemm<Real>(as_is(gs), as_is(view(at_.k, t.of_seen(m))),
               view(g.q, t.of_rows(m)), Into::overwrite, products_);
    gemm<Real>(transposed(gs), as_is(view(at_.q, t.of_rows(m))),
               view(g.k, t.of_seen(m)), into, products_);
    gemm<Real>(transposed(p), as_is(gy_tile), view(g.v, t.of_seen(w)), into,
               products_);
  }
}

template class TiledHead<float>;
template class TiledHead<double>;

}  // namespace lipscope
