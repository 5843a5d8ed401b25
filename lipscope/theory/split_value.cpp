#include <algorithm>
#include <cmath>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split.h"

namespace lipscope {
namespace {

// one number for each head, spread over its columns
Vector spread(const Vector& heads, Index width) {
  Vector out(heads.size() * width);
  for (Index h = 0; h < heads.size(); ++h)
    out.segment(h * width, width).setConstant(heads[h]);
  return out;
}

// λ_max of t_h G_hg t_g, or of its entry-by-entry product with a Gram matrix of
// the heads; weights enter as [H×H]
double scaled_eigenvalue(const Gram& gram, const Matrix& weights, Index width) {
  Matrix g = gram.g;
  for (Index a = 0; a < weights.rows(); ++a)
    for (Index b = 0; b < weights.rows(); ++b)
      g.block(a * width, b * width, width, width) *= weights(a, b);
  // an error E of G becomes W∘E, and ‖W∘E‖ ≤ max W_hh ‖E‖ for W ⪰ 0 (Schur);
  // 1e-12 is for the rounding of W and of the product
  const double most = weights.diagonal().maxCoeff();
  return eigenvalue_above(g,
                          well_above(most * (gram.error + 1e-12 * gram.size)));
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

}  // namespace

double value_path_above(const LayerParts& l, const SplitWeights& split,
                        const LayerAt& at) {
  const Index H = l.heads, n = at.x.rows();
  constexpr Index few = 24;  // see split.h
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

  Vector s = parts.rest.array() + 1e-9;
  for (Index h = 0; h < H; ++h)
    s[h] = std::sqrt(
        std::max({s[h], parts.row.row(h).norm(), parts.col.row(h).norm()}));
  const Vector inverse = s.cwiseInverse();
  const Matrix rows = parts.row * parts.row.transpose();
  const Matrix cols = parts.col * parts.col.transpose();
  const Matrix ones = s * s.transpose();
  const Matrix inverse_ones = inverse * inverse.transpose();

  double corner = 0.0, v = 0.0, o = 0.0, v_row = 0.0, o_col = 0.0, rest = 0.0;
  const auto corner_norm = [&] {
    const Vector c = spread(parts.corner, l.w);
    Matrix scaled = l.value * c.asDiagonal();
    if (l.projected) scaled = product(as_is(scaled), as_is(l.output), 1);
    corner = weight_norm_above(scaled) + 1e-13 * scaled.norm();
  };
  if (!l.projected) {
    // heads side by side: all of S goes to W_V, and the two thin parts are
    // exact
    const Matrix lengths = cols.diagonal().cwiseSqrt();
    const Matrix rests = parts.rest * parts.rest.transpose();
    corner_norm();
    v_row = std::sqrt(scaled_eigenvalue(split.value, rows, l.w));
    o_col = std::sqrt(
        scaled_eigenvalue(split.value, lengths * lengths.transpose(), l.w));
    rest = std::sqrt(scaled_eigenvalue(split.value, rests, l.w));
    return well_above(norm_of_two_by_two(corner, v_row, o_col, rest));
  }
  parallel_for(5, l.threads, [&](Index task) {
    if (task == 0) corner_norm();
    if (task == 1) v = scaled_eigenvalue(split.value, ones, l.w);
    if (task == 2) o = scaled_eigenvalue(split.output, ones, l.w);
    if (task == 3)
      v_row =
          scaled_eigenvalue(split.value, rows.cwiseProduct(inverse_ones), l.w);
    if (task == 4)
      o_col =
          scaled_eigenvalue(split.output, cols.cwiseProduct(inverse_ones), l.w);
  });
  // ‖E_h‖ ≤ S_h², and less where another part decided S_h
  rest = std::sqrt(v * o) * parts.rest.cwiseQuotient(s.cwiseAbs2()).maxCoeff();
  return well_above(norm_of_two_by_two(corner, std::sqrt(v_row * o),
                                       std::sqrt(v * o_col), rest));
}

}  // namespace lipscope
