#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

// one number for each head, spread over its columns
Vector spread(const Vector& heads, Index width) {
  Vector out(heads.size() * width);
  for (Index h = 0; h < heads.size(); ++h)
    out.segment(h * width, width).setConstant(heads[h]);
  return out;
}

// ‖W_V C W_O‖ for C = diag(c), c constant on heads: √λ(AᵀG_VA), A = C F
double corner_above(const LayerParts& l, const SplitWeights& split,
                    const Vector& corner) {
  const Vector c = spread(corner, l.w);
  const Index size = c.size();
  if (!l.projected) {
    const Matrix g = c.asDiagonal() * split.value.g * c.asDiagonal();
    const double most = c.cwiseAbs2().maxCoeff();
    return std::sqrt(eigenvalue_above(
        g, well_above(most * (split.value.error + 1e-14 * split.value.size))));
  }
  const Matrix a = c.asDiagonal() * split.output_factor;
  // A is lower triangular, and half of AᵀG_VA is enough: strip by strip
  Matrix turned(size, size), s = Matrix::Zero(size, size);
  constexpr Index strip = 96;
  for (Index j = 0; j < size; j += strip) {
    const Index cols = std::min(strip, size - j);
    gemm(as_is(view(split.value.g, {0, j, size, size - j})),
         as_is(view(a, {j, j, size - j, cols})),
         view(turned, {0, j, size, cols}));
  }
  for (Index i = 0; i < size; i += strip) {
    const Index rows = std::min(strip, size - i), below = size - i;
    gemm(transposed(view(a, {i, i, below, rows})),
         as_is(view(std::as_const(turned), {i, 0, below, i + rows})),
         view(s, {i, 0, rows, i + rows}));
  }
  s.triangularView<Eigen::StrictlyUpper>() = s.transpose();
  // G_V errs, and two products of `size` terms round
  const double length2 = a.squaredNorm();
  const double rounding = 4 * unit_roundoff * static_cast<double>(size + 4);
  return std::sqrt(eigenvalue_above(
      s,
      well_above(length2 * (split.value.error + rounding * split.value.size))));
}

// λ_max of W∘M for H×H matrices ≥ 0
double weighted(const Matrix& weights, const Matrix& between_heads) {
  return nonnegative_norm_above(weights.cwiseProduct(between_heads));
}

// |ϱ|, ϱ_hg = r_h·r_g from above
Matrix overlaps(const Matrix& rows) {
  const Vector lengths = rows.rowwise().norm();
  const Matrix products = rows * rows.transpose();
  return products.cwiseAbs() + 1e-12 * lengths * lengths.transpose();
}

// ‖Σ r_hᵀ⊗V_h‖ from |ϱ|; near and far are the norms of the weights between
// heads on
// the side of r and of the others
double thin_above(const Matrix& overlap, const Matrix& near,
                  const Matrix& far) {
  const Vector s = overlap.diagonal().cwiseSqrt().cwiseMax(1e-9).cwiseSqrt();
  const Vector inverse = s.cwiseInverse();
  return std::sqrt(
      weighted(overlap.cwiseProduct(inverse * inverse.transpose()), near) *
      weighted(s * s.transpose(), far));
}

// leading directions of all P^h together: power steps on Σ_h μ_h P^hᵀP^h. Any
// u and z would do; good ones make the rest small.
struct Directions {
  Vector u, z;
};

Directions leading(const std::vector<Matrix>& p, const Vector& mu) {
  const Index n = p[0].rows();
  Vector u = Vector::Ones(n).normalized(), z = u;
  for (int step = 0; step < 6; ++step) {
    Vector next = Vector::Zero(n);
    for (std::size_t h = 0; h < p.size(); ++h)
      next += mu[h] * (p[h].transpose() * (p[h] * z));
    z = next.normalized();
  }
  for (int step = 0; step < 6; ++step) {
    Vector next = Vector::Zero(n);
    for (std::size_t h = 0; h < p.size(); ++h)
      next += mu[h] * (p[h] * (p[h].transpose() * u));
    u = next.normalized();
  }
  return {u, z};
}

// the four parts of every P^h
struct Parts {
  Vector corner;    // c_h
  Matrix row, col;  // r_h and s_h as rows, [H×n]
  Vector rest;      // ‖E_h‖
};

Parts parts_of(const std::vector<Matrix>& p, const Directions& at,
               int threads) {
  const Index H = static_cast<Index>(p.size()), n = p[0].rows();
  Parts out{Vector(H), Matrix(H, n), Matrix(H, n), Vector(H)};
  parallel_for(H, threads, [&](Index h) {
    const Vector right = p[h] * at.z, left = p[h].transpose() * at.u;
    out.corner[h] = at.u.dot(right);
    out.row.row(h) = (left - out.corner[h] * at.z).transpose();
    out.col.row(h) = (right - out.corner[h] * at.u).transpose();
    const Matrix rest = p[h] - at.u * left.transpose() -
                        (right - out.corner[h] * at.u) * at.z.transpose();
    // u and z are of length one to a few units: so much may be missing
    out.rest[h] = weight_norm_above(rest) + 1e-13 * p[h].norm();
  });
  return out;
}

double norm_of_two_by_two(double a, double b, double c, double d) {
  return nonnegative_norm_above((Matrix(2, 2) << a, b, c, d).finished());
}

// ‖Σ E_h⊗V_h‖ from the ‖E_h‖
double rest_above(const LayerParts& l, const SplitWeights& split,
                  const Vector& norms) {
  if (!l.projected)  // heads side by side: all of S goes to W_V
    return std::sqrt(
        weighted(norms * norms.transpose(), split.value_between_heads));
  const Vector root = norms.cwiseSqrt();
  const Matrix shares = root * root.transpose();
  return std::sqrt(weighted(shares, split.value_between_heads) *
                   weighted(shares, split.output_between_heads));
}

// values with slopes of their own: E_h = P^h diag(σ^h)
double contracted_value_path_above(const LayerParts& l,
                                   const SplitWeights& split,
                                   const LayerAt& at) {
  const Matrix slopes = value_slopes_above(l, at);
  Vector norms(l.heads);
  for (Index h = 0; h < l.heads; ++h)
    norms[h] = nonnegative_norm_above(at.p[h] * slopes.col(h).asDiagonal());
  return well_above(
      std::min(rest_above(l, split, norms),
               split.norm_value * norms.maxCoeff() * split.norm_output));
}

}  // namespace

double value_path_above(const LayerParts& l, const SplitWeights& split,
                        const LayerAt& at) {
  if (!kind_of(l.options.kind).values_as_they_are)
    return contracted_value_path_above(l, split, at);
  const Index H = l.heads, n = at.x.rows();
  constexpr Index few = 24;  // see split_paths.h
  if (n < few) {
    double most = 0.0;
    for (const Matrix& p : at.p)
      most = std::max(most, nonnegative_norm_above(p));
    return well_above(split.norm_value * most * split.norm_output);
  }
  // how much a head carries, roughly
  Vector mu(H);
  for (Index h = 0; h < H; ++h)
    mu[h] = l.value.middleCols(h * l.w, l.w).squaredNorm() *
            split.head_output[h] * split.head_output[h];
  if (mu.maxCoeff() == 0.0) return 0.0;
  const Parts parts =
      parts_of(at.p, leading(at.p, mu / mu.maxCoeff()), l.threads);

  const Matrix rows = overlaps(parts.row), cols = overlaps(parts.col);
  const double corner = corner_above(l, split, parts.corner);
  double row = 0.0, col = 0.0;
  if (l.projected) {
    row =
        thin_above(rows, split.value_between_heads, split.output_between_heads);
    col =
        thin_above(cols, split.output_between_heads, split.value_between_heads);
  } else {
    // heads side by side: all of S goes to W_V
    const Vector lengths = cols.diagonal().cwiseSqrt();
    row = std::sqrt(weighted(rows, split.value_between_heads));
    col = std::sqrt(
        weighted(lengths * lengths.transpose(), split.value_between_heads));
  }
  double rest = rest_above(l, split, parts.rest);
  // where no head stands out, the norms of all heads together say more
  const double both = split.norm_value * split.norm_output;
  const auto longest = [](const Matrix& overlap) {
    return std::sqrt(overlap.diagonal().maxCoeff());
  };
  row = std::min(row, well_above(both * longest(rows)));
  col = std::min(col, well_above(both * longest(cols)));
  rest = std::min(rest, well_above(both * parts.rest.maxCoeff()));
  return well_above(norm_of_two_by_two(corner, row, col, rest));
}

}  // namespace lipscope
