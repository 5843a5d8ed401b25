#include "lipscope/attention/multi_head.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "lipscope/attention/head.h"
#include "lipscope/attention/l2.h"
#include "lipscope/attention/tiled_head.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// the chosen heads' blocks of `width` columns, side by side
Matrix columns_of(const Matrix& m, const std::vector<Index>& heads,
                  Index width) {
  Matrix out(m.rows(), static_cast<Index>(heads.size()) * width);
  for (std::size_t s = 0; s < heads.size(); ++s)
    out.middleCols(s * width, width) = m.middleCols(heads[s] * width, width);
  return out;
}

// the same of a bias, zero where there is none
Vector entries_of(const Vector& bias, const std::vector<Index>& heads,
                  Index width) {
  Vector out = Vector::Zero(static_cast<Index>(heads.size()) * width);
  if (bias.size() > 0)
    for (std::size_t s = 0; s < heads.size(); ++s)
      out.segment(s * width, width) = bias.segment(heads[s] * width, width);
  return out;
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
  Matrix projection(d, heads_ * k + keys + heads_ * w);
  Vector bias(projection.cols());

  projection.leftCols(heads_ * k) =
      columns_of(weights.query, options_.heads, k);
  bias.head(heads_ * k) = entries_of(weights.query_bias, options_.heads, k);
  if (options_.kind == Kind::dot || options_.kind == Kind::sigmoid) {
    const double root = std::sqrt(static_cast<double>(k));
    projection.leftCols(heads_ * k) /= root;
    bias.head(heads_ * k) /= root;
  }
  if (!tied) {
    projection.middleCols(heads_ * k, keys) =
        columns_of(weights.key, key_heads, k);
    bias.segment(heads_ * k, keys) = entries_of(weights.key_bias, key_heads, k);
  }
  projection.rightCols(heads_ * w) =
      tied ? columns_of(l2_value(weights), options_.heads, w)
           : columns_of(weights.value, key_heads, w);
  bias.tail(heads_ * w) = entries_of(weights.value_bias, key_heads, w);

  projection_ = projection.cast<Real>();
  projection_bias_ = bias.cast<Real>();
  if (options_.project && weights.output.size() > 0) {
    output_ = columns_of(weights.output.transpose(), options_.heads, w)
                  .transpose()
                  .cast<Real>();
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
    heads_.resize(map.options_.sequences * map.heads_);
    if (map.options_.kind == Kind::cosine) raw_.resize(heads_.size());
    for_each_head([&](Index slot) {
      HeadFeatures<Real> raw = rotated(slice(projected, slot));
      heads_[slot].emplace(features(raw), weighting(), keep());
      if (map.options_.kind == Kind::cosine) raw_[slot] = std::move(raw);
    });
  }

  Index rows() const override { return tokens_ * output_width(); }
  Index cols() const override { return tokens_ * map_.projection_.rows(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(), "attention: {} numbers for a tangent of {}",
            v.size(), cols());
    const auto dx = unflatten(v, tokens_, map_.projection_.rows());
    const MatrixOf<Real> dprojected = product(
        as_is<Real>(dx), as_is(map_.projection_), map_.options_.threads);

    MatrixOf<Real> dy(tokens_, map_.heads_ * map_.value_width_);
    for_each_head([&](Index slot) {
      head_block(dy, slot) = heads_[slot]->tangent(
          features_tangent(slot, rotated(slice(dprojected, slot))));
    });
    return flatten(project(std::move(dy)));
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    require(u.size() == rows(), "attention: {} numbers for a cotangent of {}",
            u.size(), rows());
    // the lines of apply, transposed and in reverse
    const auto g = unflatten(u, tokens_, output_width());
    const MatrixOf<Real> gy =
        map_.output_.size() > 0
            ? product(as_is<Real>(g), transposed(map_.output_),
                      map_.options_.threads)
            : MatrixOf<Real>(g);

    MatrixOf<Real> gprojected(tokens_, map_.projection_.cols());
    for_each_head([&](Index slot) {
      HeadFeatures<Real> back =
          heads_[slot]->cotangent(MatrixOf<Real>(head_block(gy, slot)));
      back = features_cotangent(slot, std::move(back));
      if (rope_) rope_->unrotate(back);
      unslice(back, slot, gprojected);
    });
    VectorOf<Real> gx(cols());
    product_into(as_is(gprojected), transposed(map_.projection_),
                 unflatten(gx, tokens_, map_.projection_.rows()),
                 map_.options_.threads);
    return gx;
  }

  MatrixOf<Real> value() const {
    MatrixOf<Real> y(tokens_, map_.heads_ * map_.value_width_);
    for_each_head(
        [&](Index slot) { head_block(y, slot) = heads_[slot]->value(); });
    MatrixOf<Real> out = project(std::move(y));
    if (map_.output_bias_.size() > 0)
      out.rowwise() += map_.output_bias_.transpose();
    return out;
  }

 private:
  // one task for each head of each sequence; waking a thread for a head that
  // takes microseconds would cost more than it gives
  void for_each_head(const std::function<void(Index)>& task) const {
    const Index work = n_ * (n_ + map_.projection_.rows()) * map_.query_width_;
    parallel_for(map_.options_.sequences * map_.heads_,
                 work < (Index{1} << 19) ? 1 : map_.options_.threads, task);
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

  // the rows of a slot's sequence and the columns of its head
  template <class M>
  auto head_block(M& y, Index slot) const {
    const Index w = map_.value_width_;
    return y.block(slot / map_.heads_ * n_, slot % map_.heads_ * w, n_, w);
  }

  HeadFeatures<Real> slice(const MatrixOf<Real>& projected, Index slot) const {
    const auto rows = projected.middleRows(slot / map_.heads_ * n_, n_);
    const Index h = slot % map_.heads_;
    const Index k = map_.query_width_, w = map_.value_width_;
    return {.q = rows.middleCols(h * k, k),
            .k = rows.middleCols(key_column(h), k),
            .v = rows.middleCols(rows.cols() + (h - map_.heads_) * w, w)};
  }

  // slice, transposed: where q and k are one projection their cotangents add
  void unslice(const HeadFeatures<Real>& g, Index slot,
               MatrixOf<Real>& projected) const {
    auto rows = projected.middleRows(slot / map_.heads_ * n_, n_);
    const Index h = slot % map_.heads_;
    const Index k = map_.query_width_, w = map_.value_width_;
    rows.middleCols(h * k, k) = g.q;
    if (map_.options_.kind == Kind::l2)
      rows.middleCols(h * k, k) += g.k;
    else
      rows.middleCols(key_column(h), k) = g.k;
    rows.middleCols(rows.cols() + (h - map_.heads_) * w, w) = g.v;
  }

  Index key_column(Index h) const {
    const Index first =
        map_.options_.kind == Kind::l2 ? 0 : map_.heads_ * map_.query_width_;
    return first + h * map_.query_width_;
  }

  const MultiHeadAttention& map_;
  Index tokens_, n_;  // in all, and of one sequence
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
