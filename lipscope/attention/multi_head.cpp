#include "lipscope/attention/multi_head.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/head.h"
#include "lipscope/attention/l2.h"
#include "lipscope/attention/tiled_head.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// the chosen heads' blocks of `width` columns, side by side, in columns of `to`
// from `first` on
template <class Real>
void take_columns(const Matrix& from, const std::vector<Index>& heads,
                  Index width, MatrixOf<Real>& to, Index first) {
  for (std::size_t s = 0; s < heads.size(); ++s)
    to.middleCols(first + s * width, width) =
        from.middleCols(heads[s] * width, width).template cast<Real>();
}

// the same of a bias, zero where there is none
template <class Real>
void take_entries(const Vector& from, const std::vector<Index>& heads,
                  Index width, VectorOf<Real>& to, Index first) {
  for (std::size_t s = 0; s < heads.size(); ++s) {
    auto entries = to.segment(first + s * width, width);
    if (from.size() == 0)
      entries.setZero();
    else
      entries = from.segment(heads[s] * width, width).template cast<Real>();
  }
}

std::uint64_t quarter_of_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE)) / 4;
}

}  // namespace

template <class Real>
MultiHeadAttention<Real>::MultiHeadAttention(const AttentionWeights& weights,
                                             AttentionOptions options)
    : options_(std::move(options)),
      query_width_(weights.query_width()),
      value_width_(weights.value_width()) {
  require_sound(weights, options_.kind);
  require(options_.sequences >= 1, "attention: {} sequences",
          options_.sequences);
  if (options_.heads.empty()) {
    options_.heads.resize(weights.heads);
    std::iota(options_.heads.begin(), options_.heads.end(), Index{0});
  }
  std::vector<bool> taken(weights.heads, false);
  for (const Index h : options_.heads) {
    require(h >= 0 && h < weights.heads,
            "attention: head {} of a layer with {} heads", h, weights.heads);
    require(!taken[h], "attention: head {} is chosen twice", h);
    taken[h] = true;
  }
  heads_ = static_cast<Index>(options_.heads.size());
  std::vector<Index> key_heads;  // with repeats where a group shares one
  for (const Index h : options_.heads) key_heads.push_back(weights.key_head(h));
  if (options_.rope_theta)
    require_rotatable(*options_.rope_theta, query_width_, options_.kind);

  const Index k = query_width_, w = value_width_, d = weights.features();
  const bool tied = options_.kind == Kind::l2;
  const Index keys = tied ? 0 : heads_ * k;
  const Index values = heads_ * k + keys;  // where the columns of v begin
  projection_.resize(d, values + heads_ * w);
  projection_bias_.resize(projection_.cols());

  take_columns(weights.query, options_.heads, k, projection_, 0);
  take_entries(weights.query_bias, options_.heads, k, projection_bias_, 0);
  if (options_.kind == Kind::dot || options_.kind == Kind::sigmoid) {
    const Real root = std::sqrt(static_cast<Real>(k));
    projection_.leftCols(heads_ * k) /= root;
    projection_bias_.head(heads_ * k) /= root;
  }
  if (!tied) {
    take_columns(weights.key, key_heads, k, projection_, heads_ * k);
    take_entries(weights.key_bias, key_heads, k, projection_bias_, heads_ * k);
  }
  if (tied)
    take_columns(l2_value(weights), options_.heads, w, projection_, values);
  else
    take_columns(weights.value, key_heads, w, projection_, values);
  take_entries(weights.value_bias, key_heads, w, projection_bias_, values);

  if (options_.project && weights.output.size() > 0) {
    output_.resize(heads_ * w, weights.output.cols());
    for (Index s = 0; s < heads_; ++s)
      output_.middleRows(s * w, w) =
          weights.output.middleRows(options_.heads[s] * w, w)
              .template cast<Real>();
    output_bias_ = weights.output_bias.cast<Real>();
  }
}

// The Jacobian at X, and the state of every head there.
//
//   X ─ project ─► q k v ─ features ─► head (P) ─► y ─ W_O ─► f(X)
//
// Biases only place the point; no tangent passes through them.
template <class Real>
class MultiHeadAttention<Real>::Jacobian final : public LinearOperator<Real> {
 public:
  Jacobian(const MultiHeadAttention& map, const MatrixOf<Real>& x)
      : map_(map), tokens_(x.rows()), n_(x.rows() / map.options_.sequences) {
    require(x.cols() == map.projection_.rows(),
            "attention: tokens have {} features, the layer reads {}", x.cols(),
            map.projection_.rows());
    require(x.rows() > 0, "attention: the sequence is empty");
    require(x.rows() % map.options_.sequences == 0,
            "attention: {} tokens do not make {} sequences of one length",
            x.rows(), map.options_.sequences);
    require(x.allFinite(), "attention: the tokens are not all finite");

    MatrixOf<Real> projected =
        product(as_is(x), as_is(map.projection_), map.options_.threads);
    projected.rowwise() += map.projection_bias_.transpose();

    if (map.options_.rope_theta)
      rope_.emplace(n_, map.query_width_, *map.options_.rope_theta);
    all_.resize(map.options_.sequences);
    std::iota(all_.begin(), all_.end(), Index{0});
    heads_.resize(map.options_.sequences * map.heads_);
    if (map.options_.kind == Kind::cosine) raw_.resize(heads_.size());
    for_each_head(all_, [&](Index slot, Index place) {
      HeadFeatures<Real> raw = rotated(slice(projected, place));
      heads_[slot].emplace(features(raw), weighting(), keep());
      if (map.options_.kind == Kind::cosine) raw_[slot] = std::move(raw);
    });
  }

  Index rows() const override { return tokens_ * output_width(); }
  Index cols() const override { return tokens_ * map_.projection_.rows(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(), "attention: {} numbers for a tangent of {}",
            v.size(), cols());
    // a sequence that does not move needs no work: those that do are packed
    const std::vector<Index> moving = sequences_in(v);
    MatrixOf<Real> scratch;
    const MatrixOf<Real> dprojected =
        product(as_is(packed(v, moving, scratch)), as_is(map_.projection_),
                map_.options_.threads);

    MatrixOf<Real> dy(dprojected.rows(), map_.heads_ * map_.value_width_);
    for_each_head(moving, [&](Index slot, Index place) {
      const View<Real> out = view(dy, head_block(place));
      if (plain()) {
        heads_[slot]->tangent(feature_views(dprojected, place), out);
        return;
      }
      const HeadFeatures<Real> d =
          features_tangent(slot, rotated(slice(dprojected, place)));
      heads_[slot]->tangent(view(d), out);
    });
    return map_.output_.size() > 0
               ? unpacked_product(dy, as_is(map_.output_), moving)
               : unpacked(dy, moving);
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    require(u.size() == rows(), "attention: {} numbers for a cotangent of {}",
            u.size(), rows());
    // the lines of apply, transposed and in reverse
    const std::vector<Index> moving = sequences_in(u);
    MatrixOf<Real> scratch, unprojected;
    const ConstView<Real> gf = packed(u, moving, scratch);
    const bool projects = map_.output_.size() > 0;
    if (projects)
      unprojected =
          product(as_is(gf), transposed(map_.output_), map_.options_.threads);
    const ConstView<Real> gy = projects ? view(std::as_const(unprojected)) : gf;

    MatrixOf<Real> gprojected(gy.rows(), map_.projection_.cols());
    for_each_head(moving, [&](Index slot, Index place) {
      const ConstView<Real> in = view(gy, head_block(place));
      if (plain()) {
        heads_[slot]->cotangent(in, feature_views(gprojected, place));
        return;
      }
      const HeadFeatures<Real>& at = heads_[slot]->at();
      HeadFeatures<Real> back{.q = MatrixOf<Real>(n_, at.q.cols()),
                              .k = MatrixOf<Real>(n_, at.k.cols()),
                              .v = MatrixOf<Real>(n_, at.v.cols())};
      heads_[slot]->cotangent(in, view(back));
      back = features_cotangent(slot, std::move(back));
      if (rope_) rope_->unrotate(back);
      unslice(back, place, gprojected);
    });
    return unpacked_product(gprojected, transposed(map_.projection_), moving);
  }

  // The shift of all tokens that the layer stretches most. Under a causal mask
  // early tokens are seen by more: in Hardy's inequality, which is what uniform
  // causal weights are, 1/√j is the sequence that comes nearest to equality.
  VectorOf<Real> likely_direction() const override {
    const bool dot = map_.options_.kind == Kind::dot;
    if (n_ < 32 || (!dot && map_.options_.kind != Kind::l2)) return {};
    const Index heads = map_.heads_, k = map_.query_width_;
    const Index w = map_.value_width_, d = map_.projection_.rows();
    // a shift leaves distances, hence the weights of tied L2, as they are;
    // rotated queries do not move alike, and their part is left out
    std::vector<MatrixOf<Real>> covariances;
    if (dot && !rope_) {
      covariances.resize(heads_.size());
      for_each_head(all_, [&](Index slot, Index) {
        covariances[slot] = heads_[slot]->mean_covariance();
      });
    }
    const CommonMode<Real> mode(
        view(map_.projection_, {0, 0, d, heads * k}),
        view(map_.projection_,
             {0, map_.projection_.cols() - heads * w, d, heads * w}),
        view(map_.output_), std::move(covariances), map_.options_.sequences,
        map_.options_.threads);
    const MatrixOf<Real> shifts =
        most_stretched_shift(mode, map_.options_.sequences);

    VectorOf<Real> profile = VectorOf<Real>::Ones(n_);
    if (map_.options_.mask == Mask::causal)
      for (Index j = 0; j < n_; ++j)
        profile[j] = 1 / std::sqrt(static_cast<Real>(j + 1));
    profile.normalize();
    MatrixOf<Real> direction(tokens_, d);
    for (Index s = 0; s < map_.options_.sequences; ++s)
      direction.middleRows(s * n_, n_) = profile * shifts.row(s);
    return flatten(direction);
  }

  MatrixOf<Real> value() const {
    MatrixOf<Real> y(tokens_, map_.heads_ * map_.value_width_);
    for_each_head(all_, [&](Index slot, Index place) {
      view(y, head_block(place)) = heads_[slot]->value();
    });
    MatrixOf<Real> out = project(std::move(y));
    if (map_.output_bias_.size() > 0)
      out.rowwise() += map_.output_bias_.transpose();
    return out;
  }

 private:
  // One task for each head of these sequences: its slot among all heads of all
  // sequences, and its place among those of the chosen ones. Waking a thread
  // for a head that takes microseconds would cost more than it gives.
  void for_each_head(const std::vector<Index>& sequences,
                     const std::function<void(Index, Index)>& task) const {
    const Index work = n_ * (n_ + map_.projection_.rows()) * map_.query_width_;
    parallel_for(static_cast<Index>(sequences.size()) * map_.heads_,
                 work < (Index{1} << 19) ? 1 : map_.options_.threads,
                 [&](Index place) {
                   const Index s = sequences[place / map_.heads_];
                   task(s * map_.heads_ + place % map_.heads_, place);
                 });
  }

  // the sequences in which v, of all of them end to end, is not zero
  std::vector<Index> sequences_in(const VectorOf<Real>& v) const {
    const Index size = v.size() / map_.options_.sequences;
    std::vector<Index> found;
    for (const Index s : all_)
      if (!(v.segment(s * size, size).array() == 0).all()) found.push_back(s);
    return found;
  }

  // their rows of v, one sequence under another: v itself where these are all,
  // or a copy in `scratch`
  ConstView<Real> packed(const VectorOf<Real>& v,
                         const std::vector<Index>& sequences,
                         MatrixOf<Real>& scratch) const {
    const ConstView<Real> rows = unflatten(v, tokens_, v.size() / tokens_);
    if (sequences.size() == all_.size()) return rows;
    scratch.resize(static_cast<Index>(sequences.size()) * n_, rows.cols());
    for (std::size_t i = 0; i < sequences.size(); ++i)
      scratch.middleRows(i * n_, n_) = rows.middleRows(sequences[i] * n_, n_);
    return view(std::as_const(scratch));
  }

  // packed, transposed
  VectorOf<Real> unpacked(const MatrixOf<Real>& m,
                          const std::vector<Index>& sequences) const {
    VectorOf<Real> v(tokens_ * m.cols());
    if (sequences.size() < all_.size()) v.setZero();
    for (std::size_t i = 0; i < sequences.size(); ++i)
      unflatten(v, tokens_, m.cols()).middleRows(sequences[i] * n_, n_) =
          m.middleRows(i * n_, n_);
    return v;
  }

  // unpacked(m factor), without a copy where that can be
  VectorOf<Real> unpacked_product(const MatrixOf<Real>& m,
                                  const Factor<Real>& factor,
                                  const std::vector<Index>& sequences) const {
    if (sequences.size() < all_.size())
      return unpacked(product(as_is(m), factor, map_.options_.threads),
                      sequences);
    VectorOf<Real> v(tokens_ * factor.cols());
    product_into(as_is(m), factor, unflatten(v, tokens_, factor.cols()),
                 map_.options_.threads);
    return v;
  }

  // whether a head compares and mixes the projections as they are
  bool plain() const {
    return !rope_ && (map_.options_.kind == Kind::dot ||
                      map_.options_.kind == Kind::sigmoid);
  }

  // rotated to their positions; linear, so the same for tangents
  HeadFeatures<Real> rotated(HeadFeatures<Real> f) const {
    if (rope_) rope_->rotate(f);
    return f;
  }

  // projections to what a head compares and mixes, as the kind says
  HeadFeatures<Real> features(HeadFeatures<Real> raw) const {
    switch (map_.options_.kind) {
      case Kind::l2:
      case Kind::l2_untied:
        return l2_features(raw);
      case Kind::cosine:
        return cosine_features(raw, map_.options_.cosine);
      default:
        return raw;
    }
  }

  HeadFeatures<Real> features_tangent(Index slot, HeadFeatures<Real> d) const {
    switch (map_.options_.kind) {
      case Kind::l2:
      case Kind::l2_untied:
        return l2_features_tangent(heads_[slot]->at(), d);
      case Kind::cosine:
        return cosine_features_tangent(raw_[slot], d, map_.options_.cosine);
      default:
        return d;
    }
  }

  HeadFeatures<Real> features_cotangent(Index slot,
                                        HeadFeatures<Real> g) const {
    switch (map_.options_.kind) {
      case Kind::l2:
      case Kind::l2_untied:
        return l2_features_cotangent(heads_[slot]->at(), g);
      case Kind::cosine:  // symmetric
        return cosine_features_tangent(raw_[slot], g, map_.options_.cosine);
      default:
        return g;
    }
  }

  // b = −log n with the full n, also under a causal mask [Ramapuram24]
  Weighting weighting() const {
    Weighting w{.mask = map_.options_.mask};
    if (map_.options_.kind == Kind::sigmoid)
      w.sigmoid_shift = -std::log(static_cast<double>(n_));
    return w;
  }

  // whether P of all heads fits what it may take
  typename TiledHead<Real>::Keep keep() const {
    const std::uint64_t numbers =
        static_cast<std::uint64_t>(map_.options_.sequences * map_.heads_) *
        static_cast<std::uint64_t>(
            TiledHead<Real>::weights_kept(n_, map_.options_.mask));
    const std::uint64_t most =
        map_.options_.memory > 0 ? map_.options_.memory : quarter_of_memory();
    return numbers <= most / sizeof(Real) ? TiledHead<Real>::Keep::weights
                                          : TiledHead<Real>::Keep::nothing;
  }

  Index output_width() const {
    return map_.output_.size() > 0 ? map_.output_.cols()
                                   : map_.heads_ * map_.value_width_;
  }

  MatrixOf<Real> project(MatrixOf<Real> y) const {
    if (map_.output_.size() == 0) return y;
    return product(as_is(y), as_is(map_.output_), map_.options_.threads);
  }

  // the rows of the sequence at a place and the columns of its head
  Block head_block(Index place) const {
    const Index w = map_.value_width_;
    return {place / map_.heads_ * n_, place % map_.heads_ * w, n_, w};
  }

  // q, k and v of a head among the columns of all projections, and its rows
  struct Places {
    Block q, k, v;
  };
  Places places(Index place) const {
    const Index row = place / map_.heads_ * n_, h = place % map_.heads_;
    const Index k = map_.query_width_, w = map_.value_width_;
    const Index first =
        map_.options_.kind == Kind::l2 ? 0 : map_.heads_ * k;  // of the keys
    return {.q = {row, h * k, n_, k},
            .k = {row, first + h * k, n_, k},
            .v = {row, map_.projection_.cols() + (h - map_.heads_) * w, n_, w}};
  }

  ConstHeadViews<Real> feature_views(const MatrixOf<Real>& projected,
                                     Index place) const {
    const Places at = places(place);
    return {view(projected, at.q), view(projected, at.k),
            view(projected, at.v)};
  }
  HeadViews<Real> feature_views(MatrixOf<Real>& projected, Index place) const {
    const Places at = places(place);
    return {view(projected, at.q), view(projected, at.k),
            view(projected, at.v)};
  }

  HeadFeatures<Real> slice(const MatrixOf<Real>& projected, Index place) const {
    const ConstHeadViews<Real> of = feature_views(projected, place);
    return {.q = of.q, .k = of.k, .v = of.v};
  }

  // slice, transposed: where q and k are one projection their cotangents add
  void unslice(const HeadFeatures<Real>& g, Index place,
               MatrixOf<Real>& projected) const {
    HeadViews<Real> of = feature_views(projected, place);
    of.q = g.q;
    if (map_.options_.kind == Kind::l2)
      of.q += g.k;
    else
      of.k = g.k;
    of.v = g.v;
  }

  const MultiHeadAttention& map_;
  Index tokens_, n_;        // in all, and of one sequence
  std::vector<Index> all_;  // the sequences
  std::vector<std::optional<TiledHead<Real>>> heads_;
  std::vector<HeadFeatures<Real>> raw_;  // for Kind::cosine
  std::optional<Rope<Real>> rope_;
};

template <class Real>
MatrixOf<Real> MultiHeadAttention<Real>::operator()(
    const MatrixOf<Real>& x) const {
  return Jacobian(*this, x).value();
}

template <class Real>
std::unique_ptr<LinearOperator<Real>> MultiHeadAttention<Real>::linearize(
    const MatrixOf<Real>& x) const {
  return std::make_unique<Jacobian>(*this, x);
}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;

}  // namespace lipscope
