#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/attention/settled_scores.h"
#include "lipscope/attention/tiled_head.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/gemm_parts.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/parallel.h"

/// The inside of multi_head.cpp; nobody else includes it.
namespace lipscope {

// The Jacobian at X, and the state of every head there.
//
//   X ─ project ─► q k v ─ features ─► head (P) ─► y ─ W_O ─► f(X)
//
// Biases only place the point; no tangent passes through them.
//
// Of long sequences q, k and v of all heads would take more memory than
// anything else. Then x alone is kept, and a head is made anew for every
// product: a quarter more time, and the same bits.
//
// Borrows the map, which must outlive this.
template <class Real>
class MultiHeadAttention<Real>::Jacobian final : public LinearOperator<Real> {
 public:
  Jacobian(const MultiHeadAttention& map, const MatrixOf<Real>& x)
      : map_(map),
        kind_(kind_of(map.options_.kind)),
        features_(kind_.template features<Real>()),
        tokens_(x.rows()),
        n_(x.rows() / map.options_.sequences) {
    require(x.cols() == map.projection_.rows(),
            "attention: tokens have {} features, the layer reads {}", x.cols(),
            map.projection_.rows());
    require(x.rows() > 0, "attention: the sequence is empty");
    require(x.rows() % map.options_.sequences == 0,
            "attention: {} tokens do not make {} sequences of one length",
            x.rows(), map.options_.sequences);
    require(x.allFinite(), "attention: the tokens are not all finite");
    require_weighting();
    if (map.options_.rope)
      rope_.emplace(n_, map.query_width_, *map.options_.rope);
    all_.resize(map.options_.sequences);
    std::iota(all_.begin(), all_.end(), Index{0});
    if (too_long_to_keep()) {
      x_ = x;
      return;
    }

    MatrixOf<Real> projected =
        product(as_is(x), map.project_, map.options_.threads);
    // P(v + 1bᵀ) = P v + 1bᵀ: in v, b would leave rounding errors of its own
    // size in the Jacobian, which does not depend on it
    Index biased = projected.cols();
    if (kind_.adds_value_bias_last()) biased -= mixed_width();
    projected.leftCols(biased).rowwise() +=
        map.projection_bias_.head(biased).transpose();

    norm_queries_and_keys(projected);
    heads_.resize(map.options_.sequences * map.heads_);
    raw_.resize(heads_.size());
    for_each_head(all_, [&](Index slot, Index place) {
      HeadFeatures<Real> raw = rotated(slice(projected, place));
      heads_[slot].emplace(
          features_.make ? features_.make(raw, map.options_) : raw,
          weighting(slot), keep());
      if (features_.reads_raw) raw_[slot] = std::move(raw);
    });
  }

  // see settled_scores.h; what is found in f32 is computed again in f64
  void require_settled() const {
    if constexpr (std::is_same_v<Real, double>)
      for (Index slot = 0; slot < slots(); ++slot) {
        std::optional<TiledHead<Real>> made;
        require_settled_scores(head(slot, made).at(), weighting(slot));
      }
  }

  Index rows() const override { return tokens_ * output_width(); }
  Index cols() const override { return tokens_ * map_.projection_.rows(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    require(v.size() == cols(), "attention: {} numbers for a tangent of {}",
            v.size(), cols());
    // a sequence that does not move needs no work: those that do are packed
    const std::vector<Index> moving = sequences_in(v);
    MatrixOf<Real> scratch;
    const ConstView<Real> dx = packed(v, moving, scratch);
    MatrixOf<Real> dprojected;
    if (heads_kept()) {
      dprojected = product(as_is(dx), map_.project_, map_.options_.threads);
      norms_tangent(dprojected, moving);
    }

    MatrixOf<Real> dy(dx.rows(), map_.heads_ * map_.value_width_);
    for_each_head(moving, [&](Index slot, Index place) {
      const View<Real> out = view(dy, head_rectangle(place));
      if (!heads_kept()) {
        std::optional<TiledHead<Real>> made;
        const HeadFeatures<Real> d = rotated(projected_alone(dx, place));
        head(slot, made).tangent(view(d), out);
        return;
      }
      if (plain()) {
        heads_[slot]->tangent(feature_views(std::as_const(dprojected), place),
                              out);
        return;
      }
      const HeadFeatures<Real> d =
          features_tangent(slot, rotated(slice(dprojected, place)));
      heads_[slot]->tangent(view(d), out);
    });
    return map_.output_.size() > 0 ? unpacked_product(dy, map_.mix_, moving)
                                   : unpacked(dy, moving);
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    require(u.size() == rows(), "attention: {} numbers for a cotangent of {}",
            u.size(), rows());
    // the lines of apply, transposed and in reverse
    const std::vector<Index> moving = sequences_in(u);
    MatrixOf<Real> scratch, unprojected;
    const ConstView<Real> gf = packed(u, moving, scratch);
    const ConstView<Real> gy = heads_kept() ? unproject(gf, unprojected) : gf;

    MatrixOf<Real> gprojected(gy.rows(), map_.projection_.cols());
    for_each_head(moving, [&](Index slot, Index place) {
      if (!heads_kept()) {
        cotangent_alone(gf, slot, place, gprojected);
        return;
      }
      const ConstView<Real> in = view(gy, head_rectangle(place));
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
    norms_cotangent(gprojected, moving);
    return unpacked_product(gprojected, map_.unproject_, moving);
  }

  // ∇_X ⟨u, J(X) v⟩: the lines of apply once more, and the reverse of what they
  // make of the features and of their tangents. Nothing in apply but these
  // depends on X.
  MatrixOf<Real> tangent_gradient(const VectorOf<Real>& v,
                                  const VectorOf<Real>& u) const {
    require(v.size() == cols() && u.size() == rows(),
            "attention: a tangent of {} and a cotangent of {} numbers for a "
            "[{}x{}] Jacobian",
            v.size(), u.size(), rows(), cols());
    MatrixOf<Real> scratch, unprojected;
    const MatrixOf<Real> moved = product(as_is(packed(v, all_, scratch)),
                                         map_.project_, map_.options_.threads);
    MatrixOf<Real> dprojected = moved;
    norms_tangent(dprojected, all_);
    const ConstView<Real> gy = unproject(packed(u, all_, scratch), unprojected);

    MatrixOf<Real> gprojected(tokens_, map_.projection_.cols());
    MatrixOf<Real> gmoved(norms_.empty() ? 0 : tokens_, gprojected.cols());
    for_each_head(all_, [&](Index slot, Index place) {
      const HeadFeatures<Real> draw = rotated(slice(dprojected, place));
      std::optional<TiledHead<Real>> made;
      const TangentCotangent<Real> g = head_tangent_cotangent(
          head_state(head(slot, made).at(), weighting(slot)),
          features_tangent(slot, draw),
          MatrixOf<Real>(view(gy, head_rectangle(place))));
      HeadFeatures<Real> back = features_cotangent(slot, g.at);
      // what bent features add to the cotangents of the projections
      if (features_.make)
        features_.add_bend(raw_[slot], draw, g.d, map_.options_, back);
      if (rope_) rope_->unrotate(back);
      unslice(back, place, gprojected);
      if (norms_.empty()) return;
      HeadFeatures<Real> by_tangent = features_cotangent(slot, g.d);
      if (rope_) rope_->unrotate(by_tangent);
      unslice(by_tangent, place, gmoved);
    });
    norms_cotangent(gprojected, all_);
    for (const BlockNorm<Real>& norm : norms_)
      norm.add_bend(moved, gmoved, gprojected);
    return product(as_is(gprojected), map_.unproject_, map_.options_.threads);
  }

  // What the layer does to a shift of all tokens. Under a causal mask early
  // tokens are seen by more: in Hardy's inequality, which is what uniform
  // causal weights are, 1/√j is the sequence that comes nearest to equality.
  CommonShift<Real> common_shift() const {
    if (n_ < 32 || kind_.shift == ShiftEffect::unknown) return {};
    // rotated and normed queries do not move alike: their part is left out
    std::vector<MatrixOf<Real>> covariances;
    if (kind_.shift == ShiftEffect::queries_and_values && !rope_ &&
        norms_.empty()) {
      covariances.resize(slots());
      for_each_head(all_, [&](Index slot, Index) {
        std::optional<TiledHead<Real>> made;
        covariances[slot] = head(slot, made).mean_covariance();
      });
    }
    const bool mixes = map_.output_.size() > 0;
    CommonShift<Real> shift;
    shift.effect = std::make_unique<CommonMode<Real>>(
        typename CommonMode<Real>::Factors{
            .project = &map_.project_,
            .unproject = &map_.unproject_,
            .mix = mixes ? &map_.mix_ : nullptr,
            .unmix = mixes ? &map_.unmix_ : nullptr,
            .queries = map_.heads_ * map_.query_width_,
            .values = mixed_width()},
        std::move(covariances), map_.options_.sequences, map_.options_.threads);
    shift.profile = VectorOf<Real>::Ones(n_);
    if (map_.options_.mask.hides_later && !map_.options_.mask.window)
      for (Index j = 0; j < n_; ++j)
        shift.profile[j] = 1 / std::sqrt(static_cast<Real>(j + 1));
    shift.profile.normalize();
    return shift;
  }

  bool is_of(const MultiHeadAttention& map) const { return &map_ == &map; }

  MatrixOf<Real> value() const {
    MatrixOf<Real> y(tokens_, map_.heads_ * map_.value_width_);
    for_each_head(all_, [&](Index slot, Index place) {
      std::optional<TiledHead<Real>> made;
      view(y, head_rectangle(place)) = head(slot, made).value();
    });
    if (kind_.adds_value_bias_last())
      y.rowwise() += map_.projection_bias_.tail(mixed_width()).transpose();
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
                                  const RightFactor<Real>& factor,
                                  const std::vector<Index>& sequences) const {
    if (sequences.size() < all_.size())
      return unpacked(product(as_is(m), factor, map_.options_.threads),
                      sequences);
    const Index cols = factor.factor().cols();
    VectorOf<Real> v(tokens_ * cols);
    product_into(as_is(m), factor, unflatten(v, tokens_, cols),
                 map_.options_.threads);
    return v;
  }

  Index slots() const { return map_.options_.sequences * map_.heads_; }
  bool heads_kept() const { return x_.size() == 0; }

  // Whether q, k and v of all heads take too much; only of heads whose features
  // are the projections, as they are or rotated.
  bool too_long_to_keep() const {
    if (features_.make || map_.options_.query_key_norm) return false;
    constexpr std::uint64_t most_numbers = std::uint64_t{1} << 26;
    const std::uint64_t numbers =
        static_cast<std::uint64_t>(n_) *
        static_cast<std::uint64_t>(map_.projection_.cols());
    const std::uint64_t memory = map_.options_.memory;
    return numbers > most_numbers ||
           (memory > 0 && numbers > memory / sizeof(Real));
  }

  // the head of a slot: kept, or made in `made`
  const TiledHead<Real>& head(Index slot,
                              std::optional<TiledHead<Real>>& made) const {
    if (heads_kept()) return *heads_[slot];
    HeadFeatures<Real> at = projected_alone(view(x_), slot);
    const Places columns = places(slot);
    const auto add = [&](MatrixOf<Real>& m, const Rectangle& of) {
      m.rowwise() += map_.projection_bias_.segment(of.col, of.cols).transpose();
    };
    add(at.q, columns.q);
    add(at.k, columns.k);
    if (!kind_.adds_value_bias_last()) add(at.v, columns.v);
    return made.emplace(rotated(std::move(at)), weighting(slot),
                        TiledHead<Real>::Keep::nothing);
  }

  // Columns [first, first + width) of rows times a factor, on this thread, with
  // the bits that they have among all columns.
  MatrixOf<Real> columns_of_product(const ConstView<Real>& rows,
                                    const RightFactor<Real>& factor,
                                    Index first, Index width) const {
    const Index begin = first / 48 * 48;
    MatrixOf<Real> c(rows.rows(), first - begin + width);
    gemm_columns(as_is(rows), factor, begin, view(c), Into::overwrite);
    if (begin == first) return c;
    return c.rightCols(width);
  }

  // what the head at a place reads of these tokens (or of their tangents),
  // without biases
  HeadFeatures<Real> projected_alone(const ConstView<Real>& tokens,
                                     Index place) const {
    const Places at = places(place);
    const ConstView<Real> rows = view(tokens, {at.q.row, 0, n_, tokens.cols()});
    const auto make = [&](const Rectangle& of) {
      return columns_of_product(rows, map_.project_, of.col, of.cols);
    };
    return {.q = make(at.q), .k = make(at.k), .v = make(at.v)};
  }

  // from the cotangent of the output to the columns of one head, which is made
  // for it
  void cotangent_alone(const ConstView<Real>& gf, Index slot, Index place,
                       MatrixOf<Real>& gprojected) const {
    const Rectangle of = head_rectangle(place);
    MatrixOf<Real> in;
    if (map_.output_.size() > 0)
      in = columns_of_product(view(gf, {of.row, 0, n_, gf.cols()}), map_.unmix_,
                              of.col, of.cols);
    const ConstView<Real> gy =
        map_.output_.size() > 0 ? view(std::as_const(in)) : view(gf, of);
    std::optional<TiledHead<Real>> made;
    const TiledHead<Real>& at = head(slot, made);
    if (plain()) {
      at.cotangent(gy, feature_views(gprojected, place));
      return;
    }
    HeadFeatures<Real> back{.q = MatrixOf<Real>(n_, at.at().q.cols()),
                            .k = MatrixOf<Real>(n_, at.at().k.cols()),
                            .v = MatrixOf<Real>(n_, at.at().v.cols())};
    at.cotangent(gy, view(back));
    rope_->unrotate(back);
    unslice(back, place, gprojected);
  }

  // whether a head compares and mixes the projections as they are
  bool plain() const { return !rope_ && !features_.make; }

  // rotated to their positions; linear, so the same for tangents
  HeadFeatures<Real> rotated(HeadFeatures<Real> f) const {
    if (rope_) rope_->rotate(f);
    return f;
  }

  // tangents of projections to those of what a head compares and mixes
  HeadFeatures<Real> features_tangent(Index slot, HeadFeatures<Real> d) const {
    if (!features_.make) return d;
    return features_.tangent(raw_[slot], heads_[slot]->at(), d, map_.options_);
  }

  HeadFeatures<Real> features_cotangent(Index slot,
                                        HeadFeatures<Real> g) const {
    if (!features_.make) return g;
    return features_.cotangent(raw_[slot], heads_[slot]->at(), g,
                               map_.options_);
  }

  // q/k-norm of the projections, in place
  void norm_queries_and_keys(MatrixOf<Real>& projected) {
    const std::optional<QueryKeyNorm>& norm = map_.options_.query_key_norm;
    if (!norm) return;
    const Index k = map_.query_width_, H = map_.heads_;
    const Real epsilon = static_cast<Real>(norm->epsilon);
    const auto add = [&](Index first, const VectorOf<Real>& gain) {
      norms_.emplace_back(
          projected,
          typename BlockNorm<Real>::Place{.first = first,
                                          .width = norm->over_heads ? H * k : k,
                                          .blocks = norm->over_heads ? 1 : H},
          gain, epsilon);
    };
    // keys that a group shares stand there once for each of its heads, which
    // changes no mean square
    add(0, map_.query_gain_);
    add(H * k, map_.key_gain_);
  }

  // of the rows of these sequences, packed
  void norms_tangent(MatrixOf<Real>& d,
                     const std::vector<Index>& sequences) const {
    for (const BlockNorm<Real>& norm : norms_)
      for (std::size_t i = 0; i < sequences.size(); ++i)
        norm.tangent(d, static_cast<Index>(i) * n_, sequences[i] * n_, n_);
  }
  void norms_cotangent(MatrixOf<Real>& g,
                       const std::vector<Index>& sequences) const {
    for (const BlockNorm<Real>& norm : norms_)
      for (std::size_t i = 0; i < sequences.size(); ++i)
        norm.cotangent(g, static_cast<Index>(i) * n_, sequences[i] * n_, n_);
  }

  void require_weighting() const {
    require_sound(map_.options_.mask, n_);
    const Vector& mass = map_.options_.log_mass;
    const std::vector<Index>& seen = map_.options_.seen;
    require(mass.size() == 0 || mass.size() == n_,
            "attention: {} masses for {} tokens", mass.size(), n_);
    require(mass.allFinite(), "attention: the masses are not all positive");
    require(seen.empty() || static_cast<Index>(seen.size()) == n_,
            "attention: {} tokens are told what they see, there are {}",
            seen.size(), n_);
    for (const Index s : seen)
      require(s >= 1 && s <= n_, "attention: a token sees {} of {}", s, n_);
  }

  // of the head of a slot
  Weighting weighting(Index slot) const {
    Weighting w = common_weighting();
    if (const auto& bias = map_.options_.relative_bias)
      w.by_distance =
          relative_scores(*bias, map_.options_.heads[slot % map_.heads_], n_);
    return w;
  }

  Weighting common_weighting() const {
    Weighting w{.mask = map_.options_.mask,
                .log_mass = map_.options_.log_mass,
                .seen = map_.options_.seen};
    if (kind_.sigmoid_shift) w.sigmoid_shift = kind_.sigmoid_shift(n_);
    return w;
  }

  // whether P of all heads fits what it may take
  typename TiledHead<Real>::Keep keep() const {
    const std::uint64_t numbers =
        static_cast<std::uint64_t>(map_.options_.sequences * map_.heads_) *
        static_cast<std::uint64_t>(
            TiledHead<Real>::weights_kept(n_, common_weighting()));
    std::uint64_t most = map_.options_.memory;
    if (most == 0) most = static_cast<std::uint64_t>(machine_memory() / 4);
    return numbers <= most / sizeof(Real) ? TiledHead<Real>::Keep::weights
                                          : TiledHead<Real>::Keep::nothing;
  }

  // of the values of all heads, the last columns of the projections
  Index mixed_width() const { return map_.heads_ * map_.value_width_; }

  Index output_width() const {
    return map_.output_.size() > 0 ? map_.output_.cols() : mixed_width();
  }

  MatrixOf<Real> project(MatrixOf<Real> y) const {
    if (map_.output_.size() == 0) return y;
    return product(as_is(y), map_.mix_, map_.options_.threads);
  }

  // project, transposed: gf itself where nothing is projected, or what is made
  // in `scratch`
  ConstView<Real> unproject(const ConstView<Real>& gf,
                            MatrixOf<Real>& scratch) const {
    if (map_.output_.size() == 0) return gf;
    scratch = product(as_is(gf), map_.unmix_, map_.options_.threads);
    return view(std::as_const(scratch));
  }

  // the rows of the sequence at a place and the columns of its head
  Rectangle head_rectangle(Index place) const {
    const Index w = map_.value_width_;
    return {place / map_.heads_ * n_, place % map_.heads_ * w, n_, w};
  }

  // q, k and v of a head among the columns of all projections, and its rows
  struct Places {
    Rectangle q, k, v;
  };
  Places places(Index place) const {
    const Index row = place / map_.heads_ * n_, h = place % map_.heads_;
    const Index k = map_.query_width_, w = map_.value_width_;
    const Index first = kind_.tied ? 0 : map_.heads_ * k;  // of the keys
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
    if (kind_.tied)
      of.q += g.k;
    else
      of.k = g.k;
    of.v = g.v;
  }

  const MultiHeadAttention& map_;
  const AttentionKind& kind_;
  const KindFeatures<Real>& features_;
  Index tokens_, n_;        // in all, and of one sequence
  std::vector<Index> all_;  // the sequences
  std::vector<std::optional<TiledHead<Real>>> heads_;  // or nothing, and
  MatrixOf<Real> x_;                                   // what they are made of
  std::vector<HeadFeatures<Real>> raw_;  // empty where nothing reads it
  std::vector<BlockNorm<Real>> norms_;   // of q and of k, or none
  std::optional<Rope<Real>> rope_;
};

}  // namespace lipscope
