#include "lipscope/theory/norms.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "lipscope/core/cholesky.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/core/symmetric_eigen.h"
#include "lipscope/spectral/lanczos.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {
namespace {

// the c of norms.h, for a Cholesky factorisation of size n
double cholesky_slack(Index n) {
  const double gamma = (2.0 * static_cast<double>(n) + 8.0) * unit_roundoff;
  return 1.01 * gamma;
}

// p u/(1 − p u), generously
double sum_slack(Index terms) {
  return 1.01 * (static_cast<double>(terms) + 2.0) * unit_roundoff;
}

// a power of two not below x > 0: dividing by it rounds nothing
double scale_of(double x) { return std::exp2(std::ceil(std::log2(x))); }

// λ_max of a symmetric matrix, roughly and from either side: the guess that
// Cholesky has to confirm
EigenvalueEstimate guess_eigenvalue(const Matrix& g, Index steps,
                                    int threads = 1) {
  constexpr Index small = 24;
  if (g.rows() <= small) return {symmetric_eigenvalues(g)[g.rows() - 1], 0.0};
  return largest_eigenvalue(g, steps, threads);
}

// the lower triangle becomes −1 times the upper one, which stays; the diagonal
// is left to the caller. In squares, for the sake of the cache
void negate_into_lower(Matrix& g) {
  constexpr Index square = 64;
  const Index n = g.rows();
  for (Index r = 0; r < n; r += square)
    for (Index c = 0; c <= r; c += square)
      for (Index i = r; i < std::min(n, r + square); ++i)
        for (Index j = c; j < std::min(i, c + square); ++j) g(i, j) = -g(j, i);
}

// whether Cholesky runs through on tI − G
bool confirmed(const Matrix& g, double t) {
  // the transpose of rows is columns: a copy in order
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic> rest = -g.transpose();
  rest.diagonal().array() += t;
  Eigen::LLT<Eigen::Ref<decltype(rest)>> llt(rest);
  return llt.info() == Eigen::Success;
}

}  // namespace

double eigenvalue_above(const Matrix& g, double error) {
  const Index n = g.rows();
  require(g.cols() == n, "eigenvalue_above: [{}x{}] is not square", n,
          g.cols());
  if (n == 0) return next_above(error);
  require(g.allFinite(), "eigenvalue_above: the [{}x{}] matrix is not finite",
          n, n);
  const double rows = row_sum_above(g);
  if (rows == 0.0) return next_above(error);

  // a power of two brings entries to size one: nothing over- or underflows
  const double scale = scale_of(rows);
  const Matrix scaled = g / scale;
  constexpr Index steps = 18;
  const EigenvalueEstimate guess = guess_eigenvalue(scaled, steps);
  const double n_real = static_cast<double>(n);
  double best = rows / scale;
  for (const double slack : {64.0 * n_real * unit_roundoff, 1e-10, 1e-6, 1e-4,
                             1e-3, 0.01, 0.05, 0.3}) {
    // a factorisation that must fail costs as much as one that does not
    if (slack < guess.residual * guess.residual && slack < 0.01) continue;
    const double t = guess.value * (1.0 + slack);
    if (!(t > 0.0) || t >= best) break;
    if (!confirmed(scaled, t)) continue;
    // rounding of t − g_ii, and tr(tI − G) ≤ n (t + max |g_ii|)
    const double diagonal = t + scaled.diagonal().cwiseAbs().maxCoeff();
    best = std::min(best, t + 2 * unit_roundoff * diagonal +
                              cholesky_slack(n) * n_real * diagonal);
    break;
  }
  return well_above(best * scale + error);
}

double large_eigenvalue_above(Matrix g, double error, int threads) {
  const Index n = g.rows();
  require(g.cols() == n, "large_eigenvalue_above: [{}x{}] is not square", n,
          g.cols());
  if (n == 0) return next_above(error);
  require(g.allFinite(),
          "large_eigenvalue_above: the [{}x{}] matrix is not finite", n, n);
  const double rows = row_sum_above(g);
  if (rows == 0.0) return next_above(error);
  const double scale = scale_of(rows);
  g /= scale;
  constexpr Index steps = 30;
  const EigenvalueEstimate guess = guess_eigenvalue(g, steps, threads);
  const Vector diagonal = g.diagonal();
  const double n_real = static_cast<double>(n);
  double best = rows / scale;
  for (const double slack : {2048.0 * n_real * unit_roundoff, 1e-8, 1e-6, 2e-5,
                             1e-4, 1e-3, 0.01, 0.05, 0.3}) {
    if (slack < 2 * guess.residual * guess.residual && slack < 0.01) continue;
    const double t = guess.value * (1.0 + slack);
    if (!(t > 0.0) || t >= best) break;
    negate_into_lower(g);
    g.diagonal() = (t - diagonal.array()).matrix();
    if (!factor_in_place(g, threads)) continue;
    const double size = t + diagonal.cwiseAbs().maxCoeff();
    best = std::min(
        best, t + 2 * unit_roundoff * size + cholesky_slack(n) * n_real * size);
    break;
  }
  return well_above(best * scale + error);
}

Gram gram_of_columns(const Matrix& w) {
  Gram out{Matrix::Zero(w.cols(), w.cols()),
           well_above(sum_slack(w.rows()) * w.squaredNorm())};
  out.g.selfadjointView<Eigen::Lower>().rankUpdate(w.transpose());
  out.g.triangularView<Eigen::StrictlyUpper>() = out.g.transpose();
  out.size = out.g.norm();
  return out;
}

Gram gram_of_rows(const Matrix& w) { return gram_of_columns(w.transpose()); }

double power_eigenvalue_above(const Matrix& s, double error) {
  // the product errs by γ‖S‖_F² in the Frobenius norm, and ‖S‖_F² = tr(SᵀS) is
  // at most √n‖SᵀS‖_F
  const double n = static_cast<double>(s.cols());
  const Matrix square = s.transpose() * s;
  const double slack = sum_slack(s.rows()) * (std::sqrt(n) + n + 2.0);
  return well_above(std::sqrt(square.norm() * (1.0 + slack)) + error);
}

namespace {

// f of the smaller Gram matrix of W, at size one; and the root of it
template <class Eigenvalue>
double norm_by(const Matrix& w, const Eigenvalue& f) {
  if (w.size() == 0) return 0.0;
  require(w.allFinite(), "weight norm: the [{}x{}] matrix is not finite",
          w.rows(), w.cols());
  const double most = w.cwiseAbs().maxCoeff();
  if (most == 0.0) return 0.0;
  const double scale = scale_of(most);
  const Matrix scaled = w / scale;
  const Gram gram =
      w.rows() >= w.cols() ? gram_of_columns(scaled) : gram_of_rows(scaled);
  return next_above(scale * next_above(std::sqrt(f(gram.g, gram.error))));
}

}  // namespace

double weight_norm_above(const Matrix& w) {
  return norm_by(w, eigenvalue_above);
}

double guessed_norm_above(const Matrix& w, double guess) {
  require(guess > 0.0 && std::isfinite(guess),
          "weight norm: {} cannot be a norm", guess);
  if (w.size() == 0) return 0.0;
  require(w.allFinite(), "weight norm: the [{}x{}] matrix is not finite",
          w.rows(), w.cols());
  // no entry is above the norm; what is left is at most one at this scale
  if (w.cwiseAbs().maxCoeff() > guess) return weight_norm_above(w);
  const double scale = scale_of(guess);
  const Matrix scaled = w / scale;
  const Gram gram =
      w.rows() >= w.cols() ? gram_of_columns(scaled) : gram_of_rows(scaled);
  // the t whose λ_max(G) ≤ t + c tr(tI − G) + error is at most guess², with
  // room for the rounding of t itself
  const double most = (guess / scale) * (guess / scale);
  const double n = static_cast<double>(gram.g.rows());
  const double diagonal = most + gram.g.diagonal().cwiseAbs().maxCoeff();
  const double t =
      most * (1.0 - 16.0 * unit_roundoff) - 1.01 * gram.error -
      1.01 * (2 * unit_roundoff + cholesky_slack(gram.g.rows()) * n) * diagonal;
  return t > 0.0 && confirmed(gram.g, t) ? guess : weight_norm_above(w);
}

double power_norm_above(const Matrix& w) {
  return norm_by(w, power_eigenvalue_above);
}

double factor_shift(Index n, double trace, double error) {
  return 2.0 * (error + (cholesky_slack(n) + 2 * unit_roundoff) * trace);
}

Matrix factor_above(const Gram& gram) {
  const Index n = gram.g.rows();
  const double trace = gram.g.trace() + n * gram.error;
  if (trace == 0.0) return Matrix::Zero(n, n);
  const double delta = factor_shift(n, trace, gram.error);
  Matrix shifted = gram.g;
  shifted.diagonal().array() += delta;
  const Eigen::LLT<Matrix> llt(shifted);
  if (llt.info() == Eigen::Success) return llt.matrixL();
  // not positive definite though it should be: |G|'s row sum times I is above
  return std::sqrt(well_above(row_sum_above(gram.g) + gram.error)) *
         Matrix::Identity(n, n);
}

double product_norm_above(const Matrix& x, const Matrix& y) {
  require(x.cols() == y.cols(), "product_norm_above: {} columns and {}",
          x.cols(), y.cols());
  if (x.size() == 0 || y.size() == 0) return 0.0;
  const double most_x = x.cwiseAbs().maxCoeff();
  const double most_y = y.cwiseAbs().maxCoeff();
  if (most_x == 0.0 || most_y == 0.0) return 0.0;
  const double sx = scale_of(most_x), sy = scale_of(most_y);
  const Matrix f = factor_above(gram_of_columns(x / sx));
  const Gram gram = gram_of_columns(y / sy);
  // λ_max(Fᵀ(G + E)F) ≤ λ_max(FᵀGF) + ‖E‖‖F‖_F²; two more products round
  const Matrix inner = f.transpose() * gram.g * f;
  const double size = f.squaredNorm();
  const double error =
      gram.error * size + 3 * sum_slack(f.rows()) * size * gram.size;
  const double lambda = eigenvalue_above(inner, well_above(error));
  return well_above(sx * sy * std::sqrt(lambda));
}

double nonnegative_norm_above(const Matrix& n) {
  if (n.size() == 0) return 0.0;
  require(n.minCoeff() >= 0.0, "nonnegative_norm_above: an entry is {}",
          n.minCoeff());
  const double most = n.maxCoeff();
  if (most == 0.0) return 0.0;
  require(std::isfinite(most), "nonnegative_norm_above: an entry is {}", most);
  const Matrix scaled = n / most;
  Vector v = Vector::Ones(n.cols());
  double best = INFINITY;
  constexpr int most_steps = 100;
  for (int step = 0; step < most_steps; ++step) {
    const Vector u = scaled * v;
    Vector w = scaled.transpose() * u;
    const double ratio = (w.array() / v.array()).maxCoeff();
    const double before = best;
    best = std::min(best, ratio);
    if (step > 3 && best > before * (1.0 - 1e-7)) break;
    // v must stay positive, also where a column is nearly empty
    v = w / w.maxCoeff();
    v = v.cwiseMax(1e-9);
  }
  const double terms = static_cast<double>(n.rows() + n.cols()) + 8.0;
  return well_above(most *
                    std::sqrt(best * (1.0 + 1.01 * terms * unit_roundoff)));
}

double length_above(const Vector& v) {
  const double terms = static_cast<double>(v.size()) + 4.0;
  return next_above(v.stableNorm() * (1.0 + 2.0 * terms * unit_roundoff));
}

double longest_row(const Matrix& x) {
  double most = 0.0;
  for (Index i = 0; i < x.rows(); ++i)
    most = std::max(most, length_above(x.row(i)));
  return most;
}

double row_sum_above(const Matrix& w) {
  if (w.size() == 0) return 0.0;
  const double terms = static_cast<double>(w.cols()) + 2.0;
  return next_above(w.cwiseAbs().rowwise().sum().maxCoeff() *
                    (1.0 + 1.01 * terms * unit_roundoff));
}

}  // namespace lipscope
