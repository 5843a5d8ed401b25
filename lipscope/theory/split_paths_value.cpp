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

// A Gram matrix as it is, and the lower triangular F with FFᵀ ⪰ another, or
// none where that one is the identity.
struct Sides {
  const Gram& near;
  const Matrix* far = nullptr;
};

// √λ(Fᵀ(W∘G)F) for symmetric weights of heads W ⪰ 0, each of whose entries is
// within 10⁻¹² √(W_hhW_gg) of the exact one, and ∘ as in split_paths.h. The
// largest W_hh is the norm of G ↦ W∘G.
double weighted_norm_above(const Matrix& weights, const Sides& sides) {
  const Gram& gram = sides.near;
  const Index size = gram.g.rows(), w = size / weights.rows();
  Matrix g = gram.g;
  for (Index h = 0; h < weights.rows(); ++h)
    for (Index o = 0; o < weights.rows(); ++o)
      g.block(h * w, o * w, w, w) *= weights(h, o);
  const double most = weights.diagonal().maxCoeff();
  const double error = most * (1.01 * gram.error + 2e-12 * gram.size);
  if (!g.allFinite()) return INFINITY;
  if (!sides.far) return std::sqrt(eigenvalue_above(g, well_above(error)));
  const Matrix& f = *sides.far;
  // F is lower triangular, and half of the product is enough: strip by strip
  Matrix turned(size, size), s = Matrix::Zero(size, size);
  constexpr Index strip = 96;
  for (Index j = 0; j < size; j += strip) {
    const Index cols = std::min(strip, size - j);
    gemm(as_is(view(std::as_const(g), {0, j, size, size - j})),
         as_is(view(f, {j, j, size - j, cols})),
         view(turned, {0, j, size, cols}));
  }
  for (Index i = 0; i < size; i += strip) {
    const Index rows = std::min(strip, size - i), below = size - i;
    gemm(transposed(view(f, {i, i, below, rows})),
         as_is(view(std::as_const(turned), {i, 0, below, i + rows})),
         view(s, {i, 0, rows, i + rows}));
  }
  s.triangularView<Eigen::StrictlyUpper>() = s.transpose();
  if (!s.allFinite()) return INFINITY;
  // two products of `size` terms round
  const double length2 = f.squaredNorm();
  const double rounding = 4 * unit_roundoff * static_cast<double>(size + 4);
  return std::sqrt(eigenvalue_above(
      s, well_above(length2 * (error + rounding * 1.01 * g.norm()))));
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

// ‖Σ c_hV_h‖
double corner_above(const LayerParts& l, const SplitWeights& split,
                    const Parts& parts) {
  return weighted_norm_above(
      parts.corner * parts.corner.transpose(),
      {split.value, l.projected ? &split.output_factor : nullptr});
}

// Whether five eigenvalues and three products of the weights, some 10(H·w)³
// operations, are at most five times a measurement: some 200 n·d·H·w of half as
// many bits.
bool worth_exact_norms(const LayerParts& l, Index n) {
  const double columns = static_cast<double>(l.heads * l.w);
  return columns * columns <=
         48.0 * static_cast<double>(n) * static_cast<double>(l.value.rows());
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

// the entries of the 2×2 matrix
struct Norms {
  double corner, row, col, rest;
};

// from the norms of the weights between heads
Norms quick_norms(const LayerParts& l, const SplitWeights& split,
                  const Parts& parts) {
  const Matrix rows = overlaps(parts.row), cols = overlaps(parts.col);
  Norms out{.corner = INFINITY, .rest = rest_above(l, split, parts.rest)};
  if (l.projected) {
    out.row =
        thin_above(rows, split.value_between_heads, split.output_between_heads);
    out.col =
        thin_above(cols, split.output_between_heads, split.value_between_heads);
  } else {
    // heads side by side: all of S goes to W_V
    const Vector lengths = cols.diagonal().cwiseSqrt();
    out.row = std::sqrt(weighted(rows, split.value_between_heads));
    out.col = std::sqrt(
        weighted(lengths * lengths.transpose(), split.value_between_heads));
  }
  // where no head stands out, the norms of all heads together say more
  const double both = split.norm_value * split.norm_output;
  const auto longest = [](const Matrix& overlap) {
    return std::sqrt(overlap.diagonal().maxCoeff());
  };
  out.row = std::min(out.row, both * longest(rows));
  out.col = std::min(out.col, both * longest(cols));
  out.rest = std::min(out.rest, both * parts.rest.maxCoeff());
  return out;
}

// from the weights themselves
Norms exact_norms(const LayerParts& l, const SplitWeights& split,
                  const Parts& parts) {
  const Matrix rows = parts.row * parts.row.transpose();
  const Matrix cols = parts.col * parts.col.transpose();
  const Vector root = parts.rest.cwiseSqrt();
  if (!l.projected) {  // heads side by side: all goes to W_V
    const Vector lengths = cols.diagonal().cwiseSqrt();
    return {.corner = corner_above(l, split, parts),
            .row = weighted_norm_above(rows, {split.value}),
            .col = weighted_norm_above(lengths * lengths.transpose(),
                                       {split.value}),
            .rest = weighted_norm_above(parts.rest * parts.rest.transpose(),
                                        {split.value})};
  }
  return {.corner = corner_above(l, split, parts),
          .row = weighted_norm_above(rows, {split.value, &split.output_factor}),
          .col = weighted_norm_above(cols, {split.output, &split.value_factor}),
          .rest = well_above(
              weighted_norm_above(root * root.transpose(), {split.value}) *
              weighted_norm_above(root * root.transpose(), {split.output}))};
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
  double most = 0.0;
  for (const Matrix& p : at.p) most = std::max(most, nonnegative_norm_above(p));
  const double together =
      well_above(split.norm_value * most * split.norm_output);
  constexpr Index few = 24;  // see split_paths.h
  const bool exact = worth_exact_norms(l, n);
  if (n < few && !exact) return together;
  // how much a head carries, roughly
  Vector mu(H);
  for (Index h = 0; h < H; ++h)
    mu[h] = l.value.middleCols(h * l.w, l.w).squaredNorm() *
            split.head_output[h] * split.head_output[h];
  if (mu.maxCoeff() == 0.0) return together;
  const Parts parts =
      parts_of(at.p, leading(at.p, mu / mu.maxCoeff()), l.threads);
  Norms norms = quick_norms(l, split, parts);
  if (exact) {
    const Norms near = exact_norms(l, split, parts);
    norms = {.corner = near.corner,
             .row = std::min(norms.row, near.row),
             .col = std::min(norms.col, near.col),
             .rest = std::min(norms.rest, near.rest)};
  } else {
    norms.corner = corner_above(l, split, parts);
  }
  // numbers so large that products of four weights overflow
  if (!std::isfinite(norms.corner + norms.row + norms.col + norms.rest))
    return together;
  const double apart =
      norm_of_two_by_two(norms.corner, well_above(norms.row),
                         well_above(norms.col), well_above(norms.rest));
  return std::min(together, well_above(apart));
}

}  // namespace lipscope
