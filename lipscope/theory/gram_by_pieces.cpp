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
             Index i, double scale)
      : l_(l),
        at_(at),
        tokens_(tokens),
        band_(band),
        i_(i),
        n_(at.x.rows()),
        H_(l.heads),
        w_(l.w),
        Hb_(band.heads),
        K_(3 * band.heads + n_),
        scale_(scale) {
    left_.setZero(H_ * K_, w_);
    right_.setZero(H_ * K_, band.cols);
    own_size_.resize(H_, Hb_);
    value_size_.resize(H_, Hb_);
    const Matrix own = band.own_by_heads(parts.own(i));
    const Matrix values = band.values_of(tokens[i]);
    for (Index h = 0; h < H_; ++h) {
      tables_.push_back(band.table(h, own));
      left_.block(row(h, Steps, 0), 0, n_, w_) =
          tokens[i].steps.middleCols(h * w_, w_);
      for (Index g = 0; g < Hb_; ++g) {
        const auto value = values.row(h).segment(g * band.cols, band.cols);
        right_.row(row(h, Means, g)) = value.cast<float>();
        value_size_(h, g) = value.norm();
        own_size_(h, g) =
            own.block(h * w_, g * band.cols, w_, band.cols).norm();
      }
    }
    for (const FloatMatrix& t : tables_) table_factors_.emplace_back(as_is(t));
    // E_iᵀp̂_i'^g/s of the tokens before, rows [i·H×H·w]
    Matrix queries(H_ * l.k, i * H_);
    for (Index other = 0; other < i; ++other)
      queries.middleCols(other * H_, H_) = tokens[other].query.transpose();
    pulled_ = (parts.own_times(i, queries) / scale).transpose();
  }

  Sums of(const Triangle& triangle) {
    Sums sums;
    const Index together = 8;
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

  void add_tile(Index first, Index count, const Triangle& triangle,
                Sums& sums) {
    const Index area = w_ * band_.cols;
    const FloatMatrix& shares = shares_of(first, count);
    y_.resize(count, H_ * area);
    for (Index h = 0; h < H_; ++h)
      gemm(as_is(view(shares, {h * count, 0, count, 2 * Hb_})),
           table_factors_[h], view(y_, {0, h * area, count, area}));
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

  // what the rows of the tables count for, [H·count×2H']
  const FloatMatrix& shares_of(Index first, Index count) {
    shares_.resize(H_ * count, 2 * Hb_);
    for (Index t = 0; t < count; ++t) {
      const Index other = first + t;
      for (Index h = 0; h < H_; ++h)
        for (Index g = 0; g < Hb_; ++g) {
          const Matrix& its = at_.p[band_.from + g];
          shares_(h * count + t, g) =
              static_cast<float>(at_.p[h].row(i_).dot(its.row(other)));
          shares_(h * count + t, Hb_ + g) = static_cast<float>(its(other, i_));
        }
    }
    return shares_;
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
        left_.row(row(h, Own, g)) = own.cast<float>();
        left_.row(row(h, Means, g)) = means.row(g).segment(h * w_, w_);
        const double value_norm = value.norm(), own_norm = own.norm();
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

  const LayerParts& l_;
  const LayerAt& at_;
  const std::vector<TokenPieces>& tokens_;
  const PiecesBand& band_;
  Index i_, n_, H_, w_, Hb_, K_;
  double scale_;
  FloatMatrix left_, right_;  // [K×w] and [K×cols] of each head
  std::vector<FloatMatrix> tables_;
  std::vector<RightFactor<float>> table_factors_;
  Matrix own_size_, value_size_;  // [H×H']
  Matrix pulled_;
  FloatMatrix shares_, y_, room_;
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
    std::vector<Sums> sums(n);
    parallel_for(n - 1, l.threads, [&](Index before) {
      const Index i = n - 1 - before;  // those with most pairs first
      sums[i] = TokenPairs(parts, l, at, tokens, band, i, scale).of(triangle);
    });
    for (const Sums& s : sums) all.add(s);
  }

  const double terms = static_cast<double>(2 * n + 7 * H + 140);
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

Index pieces_columns(const LayerParts& l, Index n) {
  constexpr double room = 2.5e8;
  const double one = pieces_bytes(l, n) / 192;
  const double most = std::min(192.0, room / one);
  return std::max<Index>(1, static_cast<Index>(most) / 48) * 48;
}

double pieces_bytes(const LayerParts& l, Index n) {
  const double tokens = static_cast<double>(n);
  const double heads = static_cast<double>(l.heads);
  const double full = heads * static_cast<double>(l.w);
  return 192 * 4 * (tokens * (2.5 * tokens * heads + full) + 4 * heads * full);
}

}  // namespace lipscope
