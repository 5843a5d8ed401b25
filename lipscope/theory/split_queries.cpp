#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/theory/head_grams.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split.h"

namespace lipscope {
namespace {

constexpr double unit = 0x1p-53;
constexpr Index rank = 4;

// rows to orthonormal ones, as good as one pass makes them
void orthonormalise(Matrix& rows) {
  for (Index s = 0; s < rows.rows(); ++s) {
    for (Index t = 0; t < s; ++t)
      rows.row(s) -= rows.row(t).dot(rows.row(s)) * rows.row(t);
    const double length = rows.row(s).norm();
    if (length > 0.0) rows.row(s) /= length;
  }
}

// C = QᵀB + rest with a few rows in Q and B. Any Q would do; this one spans
// what C makes of random directions after one step of subspace iteration.
class Cut {
 public:
  Cut(Index k, Index w)
      : test_(gaussian(std::min<Index>({rank, k, w}), k, Rng(7))) {}

  Index rows() const { return test_.rows(); }

  // writes Q and B; ‖rest‖_F from above
  double operator()(const Eigen::Map<const Matrix>& c, View<double> left,
                    View<double> right) {
    const double size = c.norm();
    along_.noalias() = test_.lazyProduct(c);
    q_.noalias() = along_.lazyProduct(c.transpose());
    // far from over- and underflow, where there is anything
    const double most = q_.cwiseAbs().maxCoeff();
    if (most > 0.0) q_ /= most;
    orthonormalise(q_);
    b_.noalias() = q_.lazyProduct(c);
    rest_.noalias() = q_.transpose().lazyProduct(b_);
    rest_ = c - rest_;
    left = q_;
    right = b_;
    return rest_.norm() * (1 + 1e-12) + 1e-13 * size;
  }

 private:
  Matrix test_, along_, q_, b_, rest_;
};

// λ_max(L R) where L and R are Gram matrices, each up to an error
double product_eigenvalue(const Gram& left, const Gram& right) {
  const Matrix f = factor_above(left);
  const double size = f.squaredNorm();
  const Matrix s = f.transpose() * right.g * f;
  return power_eigenvalue_above(
      s, size * (right.error +
                 4 * unit * static_cast<double>(f.rows() + 2) * right.size));
}

// keys and values moved by their means: C_i^h does not change, and what cancels
// in it is smaller
struct Moved {
  Matrix k, v, k_means, v_means;
  Vector sizes;  // of each head, max|k_j| max|v_j| before
};

Moved moved(const LayerParts& l, const LayerAt& at) {
  Moved out{at.k, at.v, {}, {}, Vector(l.heads)};
  out.k.rowwise() -= at.k.colwise().mean().eval();
  out.v.rowwise() -= at.v.colwise().mean().eval();
  out.k_means = head_means(l, at, out.k);
  out.v_means = head_means(l, at, out.v);
  for (Index h = 0; h < l.heads; ++h)
    out.sizes[h] =
        std::sqrt(at.k.middleCols(h * l.k, l.k).rowwise().squaredNorm().maxCoeff() *
                  at.v.middleCols(h * l.w, l.w).rowwise().squaredNorm().maxCoeff());
  return out;
}

// C_i^h = Σ_j P_ij k_jᵀv_j − k̄_iᵀv̄_i for rows i from `begin` on, each
// flattened: P times the flattened k_jᵀv_j
void covariances(const LayerParts& l, const LayerAt& at, const Moved& m,
                 Index h, Index begin, Matrix& out) {
  const Index k = l.k, w = l.w, rows = out.rows();
  const Index seen = visible(l.mask, begin + rows - 1, at.x.rows());
  constexpr Index most = 64;  // tokens at a time
  Matrix outer(std::min(most, seen), k * w);
  for (Index from = 0; from < seen; from += most) {
    const Index count = std::min(most, seen - from);
    for (Index j = 0; j < count; ++j)
      for (Index a = 0; a < k; ++a)
        outer.row(j).segment(a * w, w) =
            m.k(from + j, h * k + a) * m.v.row(from + j).segment(h * w, w);
    gemm(as_is(view(at.p[h], {begin, from, rows, count})),
         as_is(view(std::as_const(outer), {0, 0, count, k * w})), view(out),
         from == 0 ? Into::overwrite : Into::add);
  }
  for (Index i = 0; i < rows; ++i)
    for (Index a = 0; a < k; ++a)
      out.row(i).segment(a * w, w) -= m.k_means(begin + i, h * k + a) *
                                      m.v_means.row(begin + i).segment(h * w, w);
}

}  // namespace

Vector query_blocks_above(const LayerParts& l, const SplitWeights& split,
                          const LayerAt& at) {
  const Index n = at.x.rows(), H = l.heads, k = l.k, w = l.w;
  const Moved m = moved(l, at);
  // |Ĉ − C|_F ≤ 12 (n + 8) u max|k_j| max|v_j|: n + 4 roundings in each of two
  // terms with vectors at most twice as long, and rows of P that sum to one
  // only up to (n + 2) u
  const double rounding = 12 * unit * static_cast<double>(n + 8);
  constexpr Index tile = 32;
  Vector norms(n);
  parallel_for((n + tile - 1) / tile, l.threads, [&](Index t) {
    const Index begin = t * tile, rows = std::min(tile, n - begin);
    Cut cut(k, w);
    const Index r = cut.rows();
    Matrix left(rows * r, H * k), right(rows * r, H * w), c(rows, k * w);
    Vector rest_sum = Vector::Zero(rows), rest_most = Vector::Zero(rows);
    for (Index h = 0; h < H; ++h) {
      covariances(l, at, m, h, begin, c);
      for (Index i = 0; i < rows; ++i) {
        const double rest =
            cut(Eigen::Map<const Matrix>(c.row(i).data(), k, w),
                view(left, {i * r, h * k, r, k}),
                view(right, {i * r, h * w, r, w})) +
            rounding * m.sizes[h];
        rest_sum[i] += split.head_query[h] * rest * split.head_output[h];
        rest_most[i] = std::max(rest_most[i], rest);
      }
    }
    const Matrix left_grams = head_grams(split.query, left, H, r);
    const Matrix right_grams = head_grams(split.output, right, H, r);
    const auto gram_at = [&](const Matrix& grams, const Gram& weights,
                             const Matrix& x, Index width, Index i) {
      const Eigen::Map<const Matrix> g(grams.row(i).data(), H * r, H * r);
      return Gram{g,
                  head_gram_error(weights, width,
                                  x.middleRows(i * r, r).squaredNorm()),
                  g.norm()};
    };
    for (Index i = 0; i < rows; ++i) {
      const double cut_norm = std::sqrt(
          product_eigenvalue(gram_at(left_grams, split.query, left, k, i),
                             gram_at(right_grams, split.output, right, w, i)));
      norms[begin + i] = well_above(
          cut_norm + std::min(rest_sum[i], split.norm_query * rest_most[i] *
                                               split.norm_output));
    }
  });
  return norms;
}

}  // namespace lipscope
