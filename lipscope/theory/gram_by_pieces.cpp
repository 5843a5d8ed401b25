#include "lipscope/theory/gram_by_pieces.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// Pieces and weights up to this can be multiplied in f32: three of them, and
// what is lost below 2⁻¹²⁶ is next to nothing.
constexpr double most_of_piece = 0x1p20;

struct Sums {
  double squares = 0.0;   // of LᵀTL
  double rows = 0.0;      // of TL
  double accounts = 0.0;  // of σ
  double largest = 0.0;

  void add(const Sums& s) {
    squares += s.squares;
    rows += s.rows;
    accounts += s.accounts;
    largest = std::max(largest, s.largest);
  }
};

// All pairs of a token i with those before it, in columns of L.
class TokenPairs {
 public:
  TokenPairs(const GramParts& parts, const LayerParts& l, const LayerAt& at,
             const std::vector<TokenPieces>& tokens, const PiecesBand& band,
             double scale)
      : parts_(parts),
        l_(l),
        at_(at),
        tokens_(tokens),
        band_(band),
        n_(at.x.rows()),
        H_(l.heads),
        w_(l.w),
        Hb_(band.heads),
        K_(3 * band.heads + n_),
        scale_(scale),
        left_(H_ * K_, w_),
        right_(H_ * K_, band.cols),
        value_size_(H_, Hb_) {}

  Sums of(Index i, const Triangle& triangle) {
    take(i);
    Sums sums{.largest =
                  parts_.own(i).cwiseAbs().maxCoeff() / (scale_ * scale_)};
    constexpr Index together = 8;
    for (Index first = 0; first < i_; first += together)
      add_tile(first, std::min(together, i_ - first), triangle, sums);
    return sums;
  }

 private:
  // The rows of a factor of the sums over j and over g.
  enum Rows { Values, Own, Means, Steps };
  Index row(Index h, Rows what, Index at) const {
    return h * K_ + what * Hb_ + at;
  }

  // what is the same for all pairs of token i
  void take(Index i) {
    i_ = i;
    band_.own_by_heads(parts_.own(i), own_, own_size_);
    const Matrix values = band_.values_of(tokens_[i]);
    for (Index h = 0; h < H_; ++h) {
      left_.block(row(h, Steps, 0), 0, n_, w_) =
          tokens_[i].steps.middleCols(h * w_, w_);
      for (Index g = 0; g < Hb_; ++g) {
        const auto value = values.row(h).segment(g * band_.cols, band_.cols);
        right_.row(row(h, Means, g)) = value.cast<float>();
        value_size_(h, g) = value.norm();
      }
    }
    // E_iᵀp̂_i'^g/s of the tokens before, rows [i·H×H·w]
    Matrix queries(H_ * l_.k, i * H_);
    for (Index other = 0; other < i; ++other)
      queries.middleCols(other * H_, H_) = tokens_[other].query.transpose();
    const Matrix pulled = parts_.own_times(i, queries);
    pulled_ = (pulled / scale_).transpose().cast<float>();
  }

  void add_tile(Index first, Index count, const Triangle& triangle,
                Sums& sums) {
    const Index area = w_ * band_.cols;
    find_shares(first, count);
    const FloatMatrix &shares = shares_, &owned = owned_, &own = own_;
    y_.resize(count, H_ * area);
    for (Index h = 0; h < H_; ++h) {
      gemm(as_is(view(shares, {h * count, 0, count, Hb_})),
           as_is(band_.value[h]), view(y_, {0, h * area, count, area}));
      gemm(as_is(owned), as_is(view(own, {h * Hb_, 0, Hb_, area})),
           view(y_, {0, h * area, count, area}), Into::add);
    }
    for (Index t = 0; t < count; ++t) {
      View<float> y(y_.row(t).data(), H_ * w_, band_.cols,
                    Eigen::OuterStride<>(band_.cols));
      add_pair(first + t, y, sums);
      const ConstView<float> read(y.data(), y.rows(), y.cols(),
                                  Eigen::OuterStride<>(band_.cols));
      sums.rows += sum_of_squares(read);
      sums.squares += triangle.squares_after(read, room_);
    }
  }

  // Σ_j P^h_ijP^g_i'j [H·count×H'] and P^g_i'i [count×H']
  void find_shares(Index first, Index count) {
    shares_.resize(H_ * count, Hb_);
    owned_.resize(count, Hb_);
    for (Index t = 0; t < count; ++t)
      for (Index g = 0; g < Hb_; ++g) {
        const Matrix& its = at_.p[band_.from + g];
        owned_(t, g) = static_cast<float>(its(first + t, i_));
        for (Index h = 0; h < H_; ++h)
          shares_(h * count + t, g) =
              static_cast<float>(at_.p[h].row(i_).dot(its.row(first + t)));
      }
  }

  // the other terms of T_ii'L, and σ of all
  void add_pair(Index other, View<float> y, Sums& sums) {
    const TokenPieces &mine = tokens_[i_], &its = tokens_[other];
    const PiecesBand::Token& band = band_.token[other];
    const Index cols = band_.cols;
    // of these tokens there may be something
    const Index seen = l_.mask.hides_later ? other + 1 : n_;
    const Matrix along =
        mine.pull * its.pull.middleRows(band_.from, Hb_).transpose();
    const FloatMatrix weights = along.cast<float>();
    const auto rows_of_right = [&](Rows what, Index count) {
      return View<float>(right_.row(row(0, what, 0)).data(), H_, count,
                         Eigen::OuterStride<>(K_ * cols));
    };
    gemm(as_is(weights), as_is(view(band.by_head, {0, 0, Hb_, seen * cols})),
         rows_of_right(Steps, seen * cols));
    gemm(as_is(view(mine.weights, {0, 0, H_, seen})),
         as_is(view(band.by_token, {0, 0, seen, Hb_ * cols})),
         rows_of_right(Values, Hb_ * cols));
    rows_of_right(Own, Hb_ * cols).rowwise() = band.by_token.row(i_);
    FloatMatrix means(Hb_, H_ * w_);
    gemm(as_is(view(its.weights, {band_.from, 0, Hb_, seen})),
         as_is(view(mine.steps, {0, 0, seen, H_ * w_})), view(means));
    sums.largest = std::max(sums.largest, along.cwiseAbs().maxCoeff());
    for (Index h = 0; h < H_; ++h) {
      const Index later = (i_ - other - 1) * H_ + h;
      if (other < seen)
        right_.row(row(h, Steps, other)) += band.later.row(later);
      double size = mine.steps_size[h] * band.later_size[later];
      double largest = band.later_size[later];
      for (Index g = 0; g < Hb_; ++g) {
        const auto value =
            its.value.row(band_.from + g).segment(h * w_, w_) / scale_;
        const auto own =
            pulled_.row(other * H_ + band_.from + g).segment(h * w_, w_);
        left_.row(row(h, Values, g)) = value.cast<float>();
        left_.row(row(h, Own, g)) = own;
        left_.row(row(h, Means, g)) = means.row(g).segment(h * w_, w_);
        const double value_norm = value.norm(),
                     own_norm = std::sqrt(own.cast<double>().squaredNorm());
        const Matrix& p = at_.p[band_.from + g];
        size += mine.steps_size[h] *
                    (std::abs(along(h, g)) * band.steps_size[g] +
                     its.weights_size[band_.from + g] * value_size_(h, g)) +
                value_norm * mine.weights_size[h] * band.steps_size[g] +
                own_norm * band.row_size(i_, g) +
                at_.p[h].row(i_).dot(p.row(other)) * band_.value_size(h, g) +
                p(other, i_) * own_size_(h, g);
        largest = std::max({largest, value_norm, own_norm, value_size_(h, g),
                            band_.value_size(h, g), own_size_(h, g)});
      }
      const double weight = at_.p[h](i_, other);
      size += weight * band.own_size[h];
      sums.largest = std::max({sums.largest, largest, band.own_size[h]});
      sums.accounts += size * size;
      auto to = y.middleRows(h * w_, w_);
      to += static_cast<float>(weight) * band.own.middleRows(h * w_, w_);
      const Index used = 3 * Hb_ + seen;
      const FloatMatrix &left = left_, &right = right_;
      gemm(transposed(view(left, {h * K_, 0, used, w_})),
           as_is(view(right, {h * K_, 0, used, cols})),
           view(y, {h * w_, 0, w_, cols}), Into::add);
    }
  }

  const GramParts& parts_;
  const LayerParts& l_;
  const LayerAt& at_;
  const std::vector<TokenPieces>& tokens_;
  const PiecesBand& band_;
  Index i_ = 0, n_, H_, w_, Hb_, K_;
  double scale_;
  FloatMatrix left_, right_;  // [K×w] and [K×cols] of each head
  Matrix value_size_;         // [H×H']
  FloatMatrix own_;
  Matrix own_size_;
  FloatMatrix pulled_;
  FloatMatrix shares_, owned_, y_, room_;
};

}  // namespace

PairsSize size_by_pieces(const GramParts& parts, const LayerParts& l,
                         const LayerAt& at, const Matrix& triangular,
                         const Triangle& triangle, double scale) {
  const Index n = at.x.rows(), H = l.heads, full = H * l.w;
  std::vector<std::optional<TokenPieces>> made(n);
  parallel_for(n, l.threads,
               [&](Index i) { made[i].emplace(parts, l, at, i, scale); });
  std::vector<TokenPieces> tokens;
  for (auto& t : made) tokens.push_back(std::move(*t));

  Sums all;
  const Index most = pieces_columns(l, n);
  for (Index first = 0; first < full; first += most) {
    const PiecesBand band(parts, l, tokens, triangular, scale, first,
                          std::min(most, full - first));
    // each task takes every so many tokens, with room of its own
    const Index tasks = std::min<Index>(n - 1, 4 * thread_count(l.threads));
    std::vector<Sums> sums(n);
    parallel_for(tasks, l.threads, [&](Index task) {
      TokenPairs pairs(parts, l, at, tokens, band, scale);
      for (Index i = n - 1 - task; i > 0; i -= tasks)
        sums[i] = pairs.of(i, triangle);
    });
    for (const Sums& s : sums) all.add(s);
  }

  const double terms = roundings_on_the_way(n, H);
  const double gamma = 1.1 * terms * 0x1p-24;
  const double count = static_cast<double>(n * full);
  const double lost = 0x1p-66 * 64 * terms * terms * count;
  const bool in_range = all.largest <= most_of_piece;
  return {.found = std::sqrt(2 * all.squares),
          .error = in_range
                       ? (triangle.norm() *
                              (gamma * std::sqrt(2 * all.accounts) + lost) +
                          triangle.last_error() * std::sqrt(2 * all.rows)) *
                             (1 + 1e-9)
                       : INFINITY};
}

namespace {

// of one column of L
double bytes_of_column(const LayerParts& l, Index n) {
  const double tokens = static_cast<double>(n);
  const double heads = static_cast<double>(l.heads);
  const double full = heads * static_cast<double>(l.w);
  return 4 * (tokens * (2.5 * tokens * heads + full) + 4 * heads * full);
}

}  // namespace

Index pieces_columns(const LayerParts& l, Index n) {
  constexpr double most_bytes = 2.5e8;
  constexpr Index least = 48, most = 192;
  const double columns = most_bytes / bytes_of_column(l, n);
  return columns >= static_cast<double>(most)
             ? most
             : std::max(least, static_cast<Index>(columns) / least * least);
}

double pieces_bytes(const LayerParts& l, Index n) {
  const double tokens = static_cast<double>(n);
  const double heads = static_cast<double>(l.heads);
  const double full = heads * static_cast<double>(l.w);
  const double d = static_cast<double>(l.value.rows());
  return static_cast<double>(pieces_columns(l, n)) * bytes_of_column(l, n) +
         4 * tokens * tokens * full + 8 * tokens * heads * (d + 2 * full);
}

}  // namespace lipscope
