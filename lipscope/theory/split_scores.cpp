#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split.h"

namespace lipscope {
namespace {

constexpr double unit = 0x1p-53;

// λ_max(S) for S ⪰ 0, as ‖S²‖_F^{1/2}; `error` is how far S is from exact
double power_eigenvalue(const Matrix& s, double error) {
  const Matrix square = s * s;
  return well_above(std::sqrt(square.norm()) * (1 + 1e-12) + error);
}

// ‖left · right‖² where only the Gram matrices of the columns of the one and of
// the rows of the other are known, each up to an error
double product_eigenvalue(const Gram& left, const Gram& right) {
  const Matrix f = factor_above(left);
  const double size = f.squaredNorm();
  const Matrix s = f.transpose() * right.g * f;
  return power_eigenvalue(
      s, size * (right.error +
                 4 * unit * static_cast<double>(f.rows() + 2) * right.size));
}

// Σ over blocks: entry (a, b) of head pair (h, g) is X_h[a, :] G_hg Y_g[b, :]ᵀ,
// for block-diagonal X, Y with rows [H][rank×width]
struct HeadRows {
  Matrix rows;  // [H·rank×width], head by head
  Index rank = 1;
};

Gram compressed(const Gram& gram, const HeadRows& x, Index heads) {
  const Index width = x.rows.cols(), r = x.rank;
  Gram out{Matrix(heads * r, heads * r), 0.0};
  Matrix half(gram.g.rows(), r);
  for (Index g = 0; g < heads; ++g) {
    // heads up to g: the others follow by symmetry
    half.topRows((g + 1) * width).noalias() =
        gram.g.block(0, g * width, (g + 1) * width, width) *
        x.rows.middleRows(g * r, r).transpose();
    for (Index h = 0; h <= g; ++h) {
      out.g.block(h * r, g * r, r, r).noalias() =
          x.rows.middleRows(h * r, r) * half.middleRows(h * width, width);
      if (h < g)
        out.g.block(g * r, h * r, r, r) =
            out.g.block(h * r, g * r, r, r).transpose();
    }
  }
  out.size = out.g.norm();
  const double size = x.rows.squaredNorm();
  out.error = well_above(
      size *
      (gram.error + 4 * unit * static_cast<double>(width + 4) * gram.size));
  return out;
}

// key and query blocks of a row i, for all j
class Rows {
 public:
  Rows(const LayerParts& layer, const SplitWeights& split, const LayerAt& at)
      : l_(layer), split_(split), at_(at), n_(at.x.rows()) {
    // u_j^a·u_j^b for all j as rows (a, b), once for all i
    const Index H = l_.heads, w = l_.w;
    own_.resize(H * H, n_);
    parallel_for(H, l_.threads, [&](Index b) {
      const Matrix turned =
          at.v.middleCols(b * w, w) * split.output.g.middleRows(b * w, w);
      for (Index a = 0; a < H; ++a)
        own_.row(a * H + b) = turned.middleCols(a * w, w)
                                  .cwiseProduct(at.v.middleCols(a * w, w))
                                  .rowwise()
                                  .sum()
                                  .transpose();
    });
    test_ = gaussian(l_.w, std::min<Index>({rank, l_.k, l_.w}), Rng(7));
  }

  // row i of N
  Vector row(Index i) const {
    const Index H = l_.heads, w = l_.w, seen = visible(l_.mask, i, n_);
    Matrix means(H, w);
    for (Index h = 0; h < H; ++h)
      means.row(h) =
          at_.p[h].row(i).head(seen) * at_.v.block(0, h * w, seen, w);
    Vector out = Vector::Zero(n_);
    out.head(seen) = key_blocks(i, seen, means);
    out[i] += query_block(i, seen, means);
    return out;
  }

 private:
  static constexpr Index rank = 4;

  HeadRows head_rows(const Eigen::Ref<const Eigen::RowVectorXd>& row,
                     Index width) const {
    return {Eigen::Map<const Matrix>(row.data(), l_.heads, width), 1};
  }

  // how far the Gram matrix of the u_j − ū_i can be from exact: its four terms
  // may be larger than it
  double cancellation(Index j, double mean_size) const {
    const double size = at_.v.row(j).norm() + mean_size;
    return size * size *
           (split_.output.error +
            8 * unit * static_cast<double>(l_.w + 8) * split_.output.size);
  }

  // the norms of key blocks (i, j) for all j at once. H×H matrices that depend
  // on j are kept as [H·H×seen], j along the row, so that every line below is a
  // long vector: S = Fᵀ(DGD)F, then ‖S²‖_F
  Vector key_blocks(Index i, Index seen, const Matrix& means) const {
    const Index H = l_.heads, w = l_.w;
    const Gram mean_gram = compressed(split_.output, {means, 1}, H);
    const Gram pulls = compressed(split_.key, head_rows(at_.q.row(i), l_.k), H);
    const Matrix f = factor_above(pulls);  // lower triangular

    // u_j^a·ū_i^b, as rows (a, b)
    Matrix turned(H, H * w), cross(H * H, seen);
    for (Index b = 0; b < H; ++b)
      turned.row(b).noalias() =
          means.row(b) * split_.output.g.middleRows(b * w, w);
    for (Index a = 0; a < H; ++a)
      cross.middleRows(a * H, H).noalias() =
          turned.middleCols(a * w, w) *
          at_.v.block(0, a * w, seen, w).transpose();

    Matrix g(H * H, seen);
    Vector size2 = Vector::Zero(seen);  // ‖DGD‖_F²
    for (Index a = 0; a < H; ++a)
      for (Index b = 0; b <= a; ++b) {
        g.row(a * H + b).array() =
            at_.p[a].row(i).head(seen).array() *
            at_.p[b].row(i).head(seen).array() *
            (own_.row(a * H + b).head(seen).array() -
             cross.row(a * H + b).array() - cross.row(b * H + a).array() +
             mean_gram.g(a, b));
        g.row(b * H + a) = g.row(a * H + b);
        size2 +=
            (a == b ? 1.0 : 2.0) * g.row(a * H + b).cwiseAbs2().transpose();
      }
    Matrix half = Matrix::Zero(H * H, seen), s = Matrix::Zero(H * H, seen);
    for (Index a = 0; a < H; ++a)
      for (Index m = 0; m < H; ++m)
        for (Index b = 0; b <= m; ++b)
          half.row(a * H + b) += f(m, b) * g.row(a * H + m);
    for (Index m = 0; m < H; ++m)
      for (Index a = 0; a <= m; ++a)
        for (Index b = 0; b <= a; ++b)
          s.row(a * H + b) += f(m, a) * half.row(m * H + b);
    for (Index a = 0; a < H; ++a)
      for (Index b = 0; b < a; ++b) s.row(b * H + a) = s.row(a * H + b);

    Vector fourth = Vector::Zero(seen), entry(seen);  // ‖S²‖_F²
    for (Index a = 0; a < H; ++a)
      for (Index b = 0; b <= a; ++b) {
        entry.setZero();
        for (Index m = 0; m < H; ++m)
          entry += s.row(a * H + m).cwiseProduct(s.row(m * H + b)).transpose();
        fourth += (a == b ? 1.0 : 2.0) * entry.cwiseAbs2();
      }
    return finished(i, f.squaredNorm(), means.norm(), fourth, size2);
  }

  // λ ≤ ‖S²‖_F^{1/2}, and what rounding may have hidden: in the products, and
  // in the four terms of G, which may be larger than it
  Vector finished(Index i, double factor2, double mean_size,
                  const Vector& fourth, const Vector& size2) const {
    const double terms = static_cast<double>(l_.heads) + 4.0;
    Vector out(fourth.size());
    for (Index j = 0; j < out.size(); ++j) {
      double most = 0.0;
      for (const Matrix& p : at_.p) most = std::max(most, p(i, j));
      out[j] = std::sqrt(std::sqrt(std::sqrt(fourth[j])) * (1 + 1e-12) +
                         factor2 * (8 * unit * terms * std::sqrt(size2[j]) +
                                    most * most * cancellation(j, mean_size)));
    }
    return out;
  }

  // ‖Σ_h W_Q^h C_i^h W_O^h‖
  double query_block(Index i, Index seen, const Matrix& means) const {
    const Index H = l_.heads, k = l_.k, w = l_.w, r = test_.cols();
    HeadRows left{Matrix(H * r, k), r}, right{Matrix(H * r, w), r};
    double rest_sum = 0.0, rest_most = 0.0;
    Matrix weighted(seen, w), c(k, w);
    for (Index h = 0; h < H; ++h) {
      weighted = at_.v.block(0, h * w, seen, w).rowwise() - means.row(h);
      weighted = at_.p[h].row(i).head(seen).transpose().asDiagonal() * weighted;
      c.noalias() = at_.k.block(0, h * k, seen, k).transpose() * weighted;
      // the leading columns, by one step of subspace iteration
      const Matrix start = c * test_;
      const Eigen::HouseholderQR<Matrix> qr(c * (c.transpose() * start));
      const Matrix q = qr.householderQ() * Matrix::Identity(k, r);
      const Matrix inner = q.transpose() * c;
      const double rest =
          (c - q * inner).norm() * (1 + 1e-12) + 1e-13 * c.norm();
      left.rows.middleRows(h * r, r) = q.transpose();
      right.rows.middleRows(h * r, r) = inner;
      rest_sum += split_.head_query[h] * rest * split_.head_output[h];
      rest_most = std::max(rest_most, rest);
    }
    const double rest =
        std::min(rest_sum, split_.norm_query * rest_most * split_.norm_output);
    const Gram left_gram = compressed(split_.query, left, H);
    const Gram right_gram = compressed(split_.output, right, H);
    return well_above(std::sqrt(product_eigenvalue(left_gram, right_gram)) +
                      rest);
  }

  const LayerParts& l_;
  const SplitWeights& split_;
  const LayerAt& at_;
  Index n_;
  Matrix own_;
  Matrix test_;
};

}  // namespace

SplitWeights split_weights(const LayerParts& l) {
  SplitWeights s;
  s.value = gram_of_columns(l.value);
  s.key = gram_of_columns(l.key);
  s.query = gram_of_columns(l.query);
  s.output = l.projected
                 ? gram_of_rows(l.output)
                 : Gram{Matrix::Identity(l.heads * l.w, l.heads * l.w), 0.0,
                        std::sqrt(static_cast<double>(l.heads * l.w))};
  s.norm_value = std::sqrt(eigenvalue_above(s.value.g, s.value.error));
  s.norm_query = std::sqrt(eigenvalue_above(s.query.g, s.query.error));
  s.norm_output = std::sqrt(eigenvalue_above(s.output.g, s.output.error));
  for (Index h = 0; h < l.heads; ++h) {
    s.head_query.push_back(weight_norm_above(l.query.middleCols(h * l.k, l.k)));
    s.head_output.push_back(
        l.projected ? weight_norm_above(l.output.middleRows(h * l.w, l.w))
                    : 1.0);
  }
  return s;
}

double score_paths_above(const LayerParts& l, const SplitWeights& split,
                         const LayerAt& at) {
  const Index n = at.x.rows();
  const Rows rows(l, split, at);
  Matrix norms(n, n);
  parallel_for(n, l.threads, [&](Index i) { norms.row(i) = rows.row(i); });
  return nonnegative_norm_above(norms);
}

}  // namespace lipscope
