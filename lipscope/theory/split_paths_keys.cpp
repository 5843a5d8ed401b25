#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/head_grams.h"
#include "lipscope/theory/lane.h"
#include "lipscope/theory/split_paths.h"

namespace lipscope {
namespace {

// an H×H matrix for each of eight columns j
using Lanes = std::vector<Lane, Eigen::aligned_allocator<Lane>>;

// ‖S²‖_F² and ‖M‖_F² for S = FᵀMF, F lower triangular, of eight M at once
struct Powers {
  Lane fourth, size2;
};

class PowersOf {
 public:
  explicit PowersOf(Index heads)
      : H_(heads), half_(heads * heads), s_(heads * heads) {}

  // the lower triangle of M counts, and all of it is set
  Powers operator()(const Matrix& f, const Lanes& m) {
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
    for (Index a = 0; a < H_; ++a)
      for (Index b = 0; b <= a; ++b) {
        Lane sum = s_[a * H_] * s_[b * H_];
        for (Index c = 1; c < H_; ++c) sum += s_[a * H_ + c] * s_[b * H_ + c];
        out.fourth += (a == b ? 1.0 : 2.0) * sum.square();
      }
    return out;
  }

 private:
  Index H_;
  Lanes half_, s_;
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
        sizes_(at.v.rowwise().norm()) {}

  // rows [begin, begin + rows) of the norms
  void make(Index begin, Index rows, Matrix& norms) const {
    const Index H = l_.heads, w = l_.w, n = at_.x.rows();
    const Matrix means = means_.middleRows(begin, rows);
    const Matrix q = at_.q.middleRows(begin, rows);
    const Matrix mean_grams = head_grams(split_.output, means, H);
    const Matrix pull_grams = head_grams(split_.key, q, H);
    std::vector<Matrix> factors;  // lower triangular
    for (Index i = 0; i < rows; ++i)
      factors.push_back(factor_above(
          {Eigen::Map<const Matrix>(pull_grams.row(i).data(), H, H),
           head_gram_error(split_.key, l_.k, q.row(i).squaredNorm())}));

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
    Lanes g(H * H), p(H);
    const Index seen_most = visible(l_.mask, begin + rows - 1, n);
    for (Index from = 0; from < seen_most; from += most) {
      const Index columns = std::min(most, seen_most - from);
      // u_j^a·ū_i^b: rows (i, b) of matrix a
      for (Index a = 0; a < H; ++a)
        gemm(as_is(view(std::as_const(turned), {0, a * w, rows * H, w})),
             transposed(view(at_.v, {from, a * w, columns, w})),
             view(cross[a], {0, 0, rows * H, columns}));
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; j += lane_width) {
          const Index count =
              std::min(lane_width, visible(l_.mask, begin + i, n) - from - j);
          if (count <= 0) break;
          Lane largest = Lane::Zero();
          for (Index a = 0; a < H; ++a) {
            p[a] = lane_of(&at_.p[a](begin + i, from + j), count);
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
          const Lane found = finished(
              powers_of(factors[i], g), largest, factors[i].squaredNorm(),
              lane_of(&sizes_[from + j], count) + means.row(i).norm());
          norms.row(begin + i).segment(from + j, count) =
              found.head(count).matrix().transpose();
        }
    }
  }

 private:
  // λ ≤ ‖S²‖_F^{1/2}, and what rounding may have hidden: in the products, and
  // in the four terms of G, which may be larger than it
  Lane finished(const Powers& powers, const Lane& largest, double factor2,
                const Lane& sizes) const {
    const double terms = static_cast<double>(l_.heads) + 4.0;
    const double cancelled =
        split_.output.error +
        8 * unit_roundoff * static_cast<double>(l_.w + 8) * split_.output.size;
    return (powers.fourth.sqrt().sqrt() * (1 + 1e-12) +
            factor2 * (8 * unit_roundoff * terms * powers.size2.sqrt() +
                       (largest * sizes).square() * cancelled))
        .sqrt();
  }

  const LayerParts& l_;
  const SplitWeights& split_;
  const LayerAt& at_;
  const Matrix& means_;
  Matrix own_;    // u_j^a·u_j^b for all j as rows (a, b)
  Vector sizes_;  // |v_j|
};

}  // namespace

Matrix key_path_norms_above(const LayerParts& l, const SplitWeights& split,
                            const LayerAt& at, const Matrix& means) {
  const Index n = at.x.rows();
  constexpr Index rows = 16;
  const KeyRows tile(l, split, at, means);
  Matrix norms = Matrix::Zero(n, n);
  parallel_for((n + rows - 1) / rows, l.threads, [&](Index t) {
    tile.make(t * rows, std::min(rows, n - t * rows), norms);
  });
  return norms;
}

}  // namespace lipscope
