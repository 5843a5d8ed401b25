#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/head_grams.h"
#include "lipscope/theory/lane.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

// an H×H matrix for each of eight columns j
using Lanes = std::vector<Lane, Eigen::aligned_allocator<Lane>>;

// For S = FᵀMF, F lower triangular, of eight M at once: λ(S) from above, and
// ‖M‖_F². With T = S²/‖S²‖_F, which is far from underflow, λ(S)² = ‖S²‖_F λ(T)
// and λ(T) ≤ ‖T²‖_F^{1/2}.
struct Powers {
  Lane most, size2;
};

class PowersOf {
 public:
  explicit PowersOf(Index heads)
      : H_(heads), half_(heads * heads), s_(heads * heads) {}

  // f(a, b) is an entry of F, a ≥ b: one number, or one for each of the eight.
  // The lower triangle of M counts, and all of it is set
  template <class Factor>
  Powers operator()(const Factor& f, const Lanes& m) {
    Powers out{Lane::Zero(), Lane::Zero()};
    for (Index a = 0; a < H_; ++a)
      for (Index b = 0; b < H_; ++b) {
        Lane sum = f(b, b) * m[a * H_ + b];
        for (Index c = b + 1; c < H_; ++c) sum += f(c, b) * m[a * H_ + c];
        half_[a * H_ + b] = sum;
        out.size2 += m[a * H_ + b].square();
      }
    for (Index a = 0; a < H_; ++a)
      for (Index b = 0; b <= a; ++b) {
        Lane sum = f(a, a) * half_[a * H_ + b];
        for (Index c = a + 1; c < H_; ++c) sum += f(c, a) * half_[c * H_ + b];
        s_[a * H_ + b] = s_[b * H_ + a] = sum;
      }
    const Lane size = squared(s_, half_).sqrt();  // ‖S²‖_F
    const Lane inverse = (size > 0.0).select(size.inverse(), 0.0);
    for (Lane& entry : half_) entry *= inverse;
    const Lane most = (size * squared(half_, s_).sqrt().sqrt()).sqrt();
    out.most = (size < INFINITY).select(most, INFINITY);
    return out;
  }

 private:
  // to = mᵀm for a symmetric m; ‖to‖_F²
  Lane squared(const Lanes& m, Lanes& to) const {
    Lane size2 = Lane::Zero();
    for (Index a = 0; a < H_; ++a)
      for (Index b = 0; b <= a; ++b) {
        Lane sum = m[a * H_] * m[b * H_];
        for (Index c = 1; c < H_; ++c) sum += m[a * H_ + c] * m[b * H_ + c];
        to[a * H_ + b] = to[b * H_ + a] = sum;
        size2 += (a == b ? 1.0 : 2.0) * sum.square();
      }
    return size2;
  }

  Index H_;
  Lanes half_, s_;
};

// FFᵀ ⪰ Γ for the Γ of eight tokens at once, as factor_above has it
class LaneFactor {
 public:
  explicit LaneFactor(Index heads) : H_(heads), f_(heads * heads) {}

  const Lane& operator()(Index a, Index b) const { return f_[a * H_ + b]; }
  const Lane& size2() const { return size2_; }  // ‖F‖_F²

  // entry (a, b) of the Γ_j as row a·H + b of `grams`, from column j on; each
  // within its `error` of the exact one
  void make(const Matrix& grams, Index j, Index count, const Lane& error) {
    const double heads = static_cast<double>(H_);
    Lane trace = heads * error, shift;
    for (Index a = 0; a < H_; ++a)
      trace += lane_of(&grams(a * H_ + a, j), count);
    for (Index m = 0; m < lane_width; ++m)
      shift[m] = factor_shift(H_, trace[m], error[m]);
    Lane least = Lane::Constant(INFINITY);
    for (Index b = 0; b < H_; ++b) {
      Lane pivot = lane_of(&grams(b * H_ + b, j), count) + shift;
      for (Index c = 0; c < b; ++c) pivot -= f_[b * H_ + c].square();
      least = least.min(pivot);
      const Lane root = pivot.max(0.0).sqrt();
      const Lane inverse = (pivot > 0.0).select(root.inverse(), 0.0);
      f_[b * H_ + b] = root;
      for (Index a = b + 1; a < H_; ++a) {
        Lane sum = lane_of(&grams(a * H_ + b, j), count);
        for (Index c = 0; c < b; ++c) sum -= f_[a * H_ + c] * f_[b * H_ + c];
        f_[a * H_ + b] = sum * inverse;
      }
    }
    // where Γ is 0, or not positive definite though it should be: tr(Γ)I is
    // above
    const Lane whole = (trace * (1 + 1e-12)).max(0.0).sqrt();
    size2_ = Lane::Zero();
    for (Index a = 0; a < H_; ++a)
      for (Index b = 0; b <= a; ++b) {
        Lane& f = f_[a * H_ + b];
        f = (least > 0.0).select(f, a == b ? whole : Lane(Lane::Zero()));
        size2_ += f.square();
      }
  }

 private:
  Index H_;
  Lanes f_;
  Lane size2_ = Lane::Zero();
};

// a few rows i of the key path
class KeyRows {
 public:
  KeyRows(const LayerParts& layer, const SplitWeights& split, const LayerAt& at,
          const Matrix& means)
      : l_(layer),
        split_(split),
        at_(at),
        means_(means),
        own_(head_grams(split.output, at.v, layer.heads).transpose()),
        sizes_(at.v.rowwise().norm()) {
    if (layer.normed_over_heads())
      shared_ = direction_through(split.key,
                                  shared_direction(layer, at, Feature::key));
  }

  // whether w_ij depends on j
  bool pulls_by_key() const { return at_.sloped(); }

  // rows [begin, begin + rows) of the norms
  void make(Index begin, Index rows, Matrix& norms) const {
    const Index H = l_.heads, w = l_.w, n = at_.x.rows();
    const Matrix means = means_.middleRows(begin, rows);
    const Matrix q = at_.q.middleRows(begin, rows);
    const Matrix mean_grams = head_grams(split_.output, means, H);
    std::vector<Matrix> factors;    // lower triangular, of the Γ_i
    std::vector<PullGrams> by_key;  // or the Γ_ij themselves
    const TokenRange any = seen_by_any(l_.mask, begin, rows, n);
    const TokenRange pulled = l_.mask.window ? any : TokenRange{0, n};
    if (pulls_by_key()) {
      for (Index i = 0; i < rows; ++i)
        by_key.push_back(pull_grams(begin + i, pulled));
    } else {
      const Matrix grams = head_grams(split_.key, q, H);
      for (Index i = 0; i < rows; ++i)
        factors.push_back(factor_above(
            {Eigen::Map<const Matrix>(grams.row(i).data(), H, H),
             head_gram_error(split_.key, l_.k, q.row(i).squaredNorm())}));
    }

    // ū_i^b turned back to where values are: rows (i, b)
    Matrix turned(rows * H, H * w);
    for (Index b = 0; b < H; ++b)
      gemm(as_is(view(means, {0, b * w, rows, w})),
           as_is(view(split_.output.g, {b * w, 0, w, H * w})),
           View<double>(turned.row(b).data(), rows, H * w,
                        Eigen::OuterStride<>(H * H * w)));

    constexpr Index most = 64;  // columns at a time
    std::vector<Matrix> cross(H, Matrix::Zero(rows * H, most));
    PowersOf powers_of(H);
    LaneFactor lane_factor(H);
    Lanes g(H * H), p(H);
    for (Index from = any.begin; from < any.end; from += most) {
      const Index columns = std::min(most, any.end - from);
      // u_j^a·ū_i^b: rows (i, b) of matrix a
      for (Index a = 0; a < H; ++a)
        gemm(as_is(view(std::as_const(turned), {0, a * w, rows * H, w})),
             transposed(view(at_.v, {from, a * w, columns, w})),
             view(cross[a], {0, 0, rows * H, columns}));
      for (Index i = 0; i < rows; ++i) {
        const TokenRange seen = visible(l_.mask, begin + i, n);
        for (Index j = 0; j < columns; j += lane_width) {
          const Index count = std::min(lane_width, seen.end - from - j);
          if (count <= 0) break;
          const Index hidden = std::max<Index>(0, seen.begin - from - j);
          if (hidden >= count) continue;
          Lane largest = Lane::Zero();
          for (Index a = 0; a < H; ++a) {
            p[a] = lane_of(&at_.slope(a)(begin + i, from + j), count);
            largest = largest.max(p[a]);
          }
          // D G D, G the Gram matrix of the u_j − ū_i
          for (Index a = 0; a < H; ++a)
            for (Index b = 0; b <= a; ++b)
              g[a * H + b] = g[b * H + a] =
                  p[a] * p[b] *
                  (lane_of(&own_(a * H + b, from + j), count) -
                   lane_at(&cross[a](i * H + b, j)) -
                   lane_at(&cross[b](i * H + a, j)) + mean_grams(i, a * H + b));
          const Lane sizes =
              lane_of(&sizes_[from + j], count) + means.row(i).norm();
          Lane found;
          if (pulls_by_key()) {
            const Index at = from + j - pulled.begin;
            lane_factor.make(by_key[i].grams, at, count,
                             lane_of(&by_key[i].errors[at], count));
            found = finished(powers_of(lane_factor, g), largest,
                             lane_factor.size2(), sizes);
          } else {
            found = finished(powers_of(factors[i], g), largest,
                             factors[i].squaredNorm(), sizes);
          }
          norms.row(begin + i).segment(from + j + hidden, count - hidden) =
              found.segment(hidden, count - hidden).matrix().transpose();
        }
      }
    }
  }

 private:
  // Γ_ij for these j: entry (a, b) as row a·H + b, and how far they are from
  // exact
  struct PullGrams {
    Matrix grams;
    Vector errors;
  };

  PullGrams pull_grams(Index i, const TokenRange& keys) const {
    const Matrix q = query_at_keys(l_, at_, i, keys);
    Matrix grams = head_grams(split_.key, q, l_.heads);
    if (shared_) remove_direction(*shared_, keys.begin, q, l_.heads, 1, grams);
    PullGrams out{grams.transpose(), Vector(q.rows())};
    for (Index j = 0; j < q.rows(); ++j) {
      const double size2 = q.row(j).squaredNorm();
      out.errors[j] = shared_ ? removed_gram_error(split_.key, size2)
                              : head_gram_error(split_.key, l_.k, size2);
    }
    return out;
  }

  // √λ, λ ≤ ‖S²‖_F^{1/2}, and what rounding may have hidden: in the products,
  // in the four terms of G, which may be larger than it, and by underflow
  template <class Number>
  Lane finished(const Powers& powers, const Lane& largest,
                const Number& factor2, const Lane& sizes) const {
    const double terms = static_cast<double>(l_.heads) + 4.0;
    const double cancelled =
        split_.output.error +
        8 * unit_roundoff * static_cast<double>(l_.w + 8) * split_.output.size;
    // ‖S²‖_F² is a sum of H² squares, of which those below 2⁻¹⁰²² may vanish:
    // (H² 2⁻¹⁰²²)^{1/8}
    constexpr double vanished = 1e-37;
    return (powers.most * (1 + 1e-12) +
            factor2 * (8 * unit_roundoff * terms * powers.size2.sqrt() +
                       (largest * sizes).square() * cancelled))
               .sqrt() +
           vanished;
  }

  const LayerParts& l_;
  const SplitWeights& split_;
  const LayerAt& at_;
  const Matrix& means_;
  Matrix own_;    // u_j^a·u_j^b for all j as rows (a, b)
  Vector sizes_;  // |v_j|
  std::optional<SharedDirection> shared_;  // where q/k-norm is over heads
};

}  // namespace

Matrix key_path_norms_above(const LayerParts& l, const SplitWeights& split,
                            const LayerAt& at, const Matrix& means) {
  const Index n = at.x.rows();
  const KeyRows tile(l, split, at, means);
  const Index rows = tile.pulls_by_key() ? 4 : 16;
  Matrix norms = Matrix::Zero(n, n);
  parallel_for((n + rows - 1) / rows, l.threads, [&](Index t) {
    tile.make(t * rows, std::min(rows, n - t * rows), norms);
  });
  return norms;
}

}  // namespace lipscope
