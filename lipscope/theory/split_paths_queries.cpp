#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/head_grams.h"
#include "lipscope/theory/lane.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

constexpr Index most_rank = 8;

// How many rows of C_i^h are kept. Eight, where the eigenvalue that they make,
// some 6(8H)³ operations for a token, takes no longer than to measure: some
// 200 d·H·w for a token, of half as many bits.
Index kept_rank(const LayerParts& l) {
  const double wide = static_cast<double>(most_rank * l.heads);
  const double measured =
      96.0 * static_cast<double>(l.value.rows() * l.heads * l.w);
  const Index rank = 6 * wide * wide * wide <= measured ? most_rank : 4;
  return std::min(rank, l.k);
}

// rows to orthonormal ones, as good as one pass makes them; 0 where one hardly
// differs from those before
void orthonormalise(Matrix& rows) {
  for (Index s = 0; s < rows.rows(); ++s) {
    const double before = rows.row(s).norm();
    for (Index t = 0; t < s; ++t)
      rows.row(s) -= rows.row(t).dot(rows.row(s)) * rows.row(t);
    const double length = rows.row(s).norm();
    if (length > 1e-8 * before)
      rows.row(s) /= length;
    else
      rows.row(s).setZero();
  }
}

// C = QᵀB + rest with a few rows in Q and B = QC. Any Q would do: this one
// spans C(TC)ᵀ for random T, a step of subspace iteration.
class Cut {
 public:
  Cut(Index rank, Index k, Index w) : q(rank, k), b(rank, in_lanes(w)) {}

  Matrix q, b;

  // `rows` begins C [k×w in lanes], followed by TC; ‖rest‖_F from above
  double operator()(const double* rows) {
    const Index k = q.cols(), lanes = b.cols(), rank = q.rows();
    const double* mixed = rows + k * lanes;
    for (Index a = 0; a < k; ++a)
      for (Index s = 0; s < rank; ++s) {
        Lane sum = Lane::Zero();
        for (Index x = 0; x < lanes; x += lane_width)
          sum += lane_at(mixed + s * lanes + x) * lane_at(rows + a * lanes + x);
        q(s, a) = sum.sum();
      }
    // far from underflow, where there is anything
    const double most = q.cwiseAbs().maxCoeff();
    if (most > 0.0) q /= most;
    orthonormalise(q);

    Lane size2 = Lane::Zero(), rest2 = Lane::Zero();
    for (Index x = 0; x < lanes; x += lane_width) {
      std::array<Lane, most_rank> sums;
      sums.fill(Lane::Zero());
      for (Index a = 0; a < k; ++a) {
        const Lane c = lane_at(rows + a * lanes + x);
        for (Index s = 0; s < rank; ++s) sums[s] += q(s, a) * c;
        size2 += c.square();
      }
      for (Index a = 0; a < k; ++a) {
        Lane c = lane_at(rows + a * lanes + x);
        for (Index s = 0; s < rank; ++s) c -= q(s, a) * sums[s];
        rest2 += c.square();
      }
      for (Index s = 0; s < rank; ++s) lane_at(&b(s, x)) = sums[s];
    }
    return std::sqrt(rest2.sum()) * (1 + 1e-12) +
           1e-13 * std::sqrt(size2.sum());
  }
};

// λ_max(L R) where L and R are Gram matrices, each up to an error
double product_eigenvalue(const Gram& left, const Gram& right) {
  const Matrix f = factor_above(left);
  const double size = f.squaredNorm();
  const Matrix s = f.transpose() * right.g * f;
  return power_eigenvalue_above(
      s, size * (right.error + 4 * unit_roundoff *
                                   static_cast<double>(f.rows() + 2) *
                                   right.size));
}

// keys and values moved by their means: where weights are shares C_i^h does not
// change, and what cancels in it is smaller. (Elsewhere they stay.) Each head's
// keys are followed by a few random mixtures of them, so that C_i^h is
// followed by that many of its rows; its values fill lanes.
struct Moved {
  Matrix k, v, k_means, v_means;
  Vector sizes;  // of each head, max|k_j| max|v_j| before
  bool shares = true;
};

Moved moved(const LayerParts& l, const LayerAt& at, Index rank) {
  const Index n = at.x.rows(), width = at.k.cols() / l.heads;
  const Index k = width + rank, w = in_lanes(l.w);
  Moved out{.k = Matrix(n, l.heads * k),
            .v = Matrix::Zero(n, l.heads * w),
            .sizes = Vector(l.heads),
            .shares = at.unshared_slope.empty()};
  const Matrix mix = gaussian(width, rank, Rng(7));
  Eigen::RowVectorXd k_mean = at.k.colwise().mean();
  Eigen::RowVectorXd v_mean = at.v.colwise().mean();
  if (!out.shares) {
    k_mean.setZero();
    v_mean.setZero();
  }
  for (Index h = 0; h < l.heads; ++h) {
    const auto keys = at.k.middleCols(h * width, width);
    const auto values = at.v.middleCols(h * l.w, l.w);
    auto moved_keys = out.k.middleCols(h * k, width);
    moved_keys = keys.rowwise() - k_mean.segment(h * width, width);
    out.k.middleCols(h * k + width, rank).noalias() = moved_keys * mix;
    out.v.middleCols(h * w, l.w) =
        values.rowwise() - v_mean.segment(h * l.w, l.w);
    out.sizes[h] = std::sqrt(keys.rowwise().squaredNorm().maxCoeff() *
                             values.rowwise().squaredNorm().maxCoeff());
    // P' of a softmax sums to one along a row
    if (!out.shares)
      out.sizes[h] *= std::max(1.0, at.slope(h).rowwise().sum().maxCoeff());
  }
  if (out.shares) {
    out.k_means = head_means(l, at, out.k);
    out.v_means = head_means(l, at, out.v);
  }
  return out;
}

// C_i^h = Σ_j P'_ij k_jᵀv_j − k̄_iᵀv̄_i (the last where weights are shares) for
// rows i from `begin` on, each flattened: P times the flattened k_jᵀv_j
void covariances(const LayerParts& l, const LayerAt& at, const Moved& m,
                 Index h, Index begin, Matrix& out) {
  const Index k = m.k.cols() / l.heads, w = m.v.cols() / l.heads;
  const Index rows = out.rows();
  const TokenRange seen = seen_by_any(l.mask, begin, rows, at.x.rows());
  constexpr Index most = 64;  // tokens at a time
  Matrix outer(std::min(most, seen.size()), k * w);
  const auto flat = [&](const Matrix& keys, const Matrix& values, Index j,
                        double* to, const auto& into) {
    for (Index a = 0; a < k; ++a)
      for (Index x = 0; x < w; x += lane_width)
        into(lane_at(to + a * w + x),
             keys(j, h * k + a) * lane_at(&values(j, h * w + x)));
  };
  for (Index from = seen.begin; from < seen.end; from += most) {
    const Index count = std::min(most, seen.end - from);
    for (Index j = 0; j < count; ++j)
      flat(m.k, m.v, from + j, outer.row(j).data(),
           [](auto to, const auto& product) { to = product; });
    gemm(as_is(view(at.slope(h), {begin, from, rows, count})),
         as_is(view(std::as_const(outer), {0, 0, count, k * w})), view(out),
         from == seen.begin ? Into::overwrite : Into::add);
  }
  if (!m.shares) return;
  for (Index i = 0; i < rows; ++i)
    flat(m.k_means, m.v_means, begin + i, out.row(i).data(),
         [](auto to, const auto& product) { to -= product; });
}

// C_i^h, at the beginning of `row`, to S_i^{Q,h}C_i^h and as many mixtures of
// its rows after it; the size of S_i^{Q,h}
double through_slope(const LayerParts& l, const LayerAt& at, Index h, Index i,
                     const Matrix& mix, double* row) {
  const Index width = at.k.cols() / l.heads, lanes = in_lanes(l.w);
  const Index rank = mix.rows();
  Eigen::Map<Matrix> before(row, width, lanes);
  const Matrix y = before.leftCols(l.w).transpose();
  const Matrix back = to_projections(l, at, h, Feature::query, y, i);
  Eigen::Map<Matrix> after(row, l.k + rank, lanes);
  after.setZero();
  after.topLeftCorner(l.k, l.w) = back.transpose();
  after.bottomRows(rank).noalias() = mix.lazyProduct(after.topRows(l.k));
  return slope_size(l, at, h, Feature::query, i);
}

}  // namespace

Vector query_path_norms_above(const LayerParts& l, const SplitWeights& split,
                              const LayerAt& at) {
  const Index n = at.x.rows(), H = l.heads, k = l.k, w = l.w;
  const Index r = kept_rank(l);
  const Moved m = moved(l, at, r);
  // |Ĉ − C|_F ≤ 12 (n + 8) u max|k_j| max|v_j|: n + 4 roundings in each of two
  // terms with vectors at most twice as long, and rows of P that sum to one
  // only up to (n + 2) u
  const double rounding = 12 * unit_roundoff * static_cast<double>(n + 8);
  constexpr Index tile = 32;
  const Index tiles = (n + tile - 1) / tile, width = at.k.cols() / H;
  const Matrix mix = gaussian(r, k, Rng(7));
  std::optional<SharedDirection> shared;  // where q/k-norm is over heads
  if (l.normed_over_heads())
    shared =
        direction_through(split.query, shared_direction(l, at, Feature::query));
  Matrix left(n * r, H * k), right(n * r, H * w);
  Vector rest_sum = Vector::Zero(n), rest_most = Vector::Zero(n);
  parallel_for(tiles, l.threads, [&](Index t) {
    const Index begin = t * tile, rows = std::min(tile, n - begin);
    const Index lanes = in_lanes(w);
    Cut cut(r, k, w);
    Matrix c(rows, (width + r) * lanes);
    for (Index h = 0; h < H; ++h) {
      covariances(l, at, m, h, begin, c);
      for (Index s = 0; s < rows; ++s) {
        const Index i = begin + s;
        double* row = c.row(s).data();
        const double slope =
            at.sloped() ? through_slope(l, at, h, i, mix, row) : 1.0;
        const double rest = cut(row) + rounding * slope * m.sizes[h];
        left.block(i * r, h * k, r, k) = cut.q;
        right.block(i * r, h * w, r, w) = cut.b.leftCols(w);
        const double query = shared ? split.norm_query : split.head_query[h];
        rest_sum[i] += query * rest * split.head_output[h];
        rest_most[i] = std::max(rest_most[i], rest);
      }
    }
  });
  Vector norms(n);
  parallel_for(tiles, l.threads, [&](Index t) {
    const Index begin = t * tile, rows = std::min(tile, n - begin);
    const Matrix lefts = left.middleRows(begin * r, rows * r);
    const Matrix rights = right.middleRows(begin * r, rows * r);
    Matrix left_grams = head_grams(split.query, lefts, H, r);
    if (shared) remove_direction(*shared, begin, lefts, H, r, left_grams);
    const Matrix right_grams = head_grams(split.output, rights, H, r);
    const auto gram_at = [&](const Matrix& grams, double error, Index i) {
      const Eigen::Map<const Matrix> g(grams.row(i).data(), H * r, H * r);
      return Gram{g, error, g.norm()};
    };
    for (Index i = 0; i < rows; ++i) {
      const double left2 = lefts.middleRows(i * r, r).squaredNorm();
      const double right2 = rights.middleRows(i * r, r).squaredNorm();
      const double left_error = shared ? removed_gram_error(split.query, left2)
                                       : head_gram_error(split.query, k, left2);
      const double cut_norm = std::sqrt(product_eigenvalue(
          gram_at(left_grams, left_error, i),
          gram_at(right_grams, head_gram_error(split.output, w, right2), i)));
      norms[begin + i] = well_above(
          cut_norm + std::min(rest_sum[begin + i], split.norm_query *
                                                       rest_most[begin + i] *
                                                       split.norm_output));
    }
  });
  return norms;
}

}  // namespace lipscope
