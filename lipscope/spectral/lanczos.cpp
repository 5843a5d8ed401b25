#include "lipscope/spectral/lanczos.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/symmetric_eigen.h"

namespace lipscope {
namespace {

// G v, above a size in pieces of rows
Vector times(const Matrix& g, const Vector& v, int threads) {
  constexpr Index piece = 512, large = 2048;
  const Index n = g.rows();
  if (n < large) return g * v;
  Vector out(n);
  parallel_for((n + piece - 1) / piece, threads, [&](Index p) {
    const Index begin = p * piece, rows = std::min(piece, n - begin);
    out.segment(begin, rows).noalias() = g.middleRows(begin, rows) * v;
  });
  return out;
}

}  // namespace

EigenvalueEstimate largest_eigenvalue(const Matrix& g, Index steps,
                                      int threads) {
  const Index n = g.rows();
  require(g.cols() == n && n > 0, "largest_eigenvalue: a matrix [{}x{}]", n,
          g.cols());
  require(steps >= 1, "largest_eigenvalue: {} steps", steps);

  // G V = V T + beta v_{m+1} e_mᵀ with the rows of `basis` for V
  Matrix basis(steps, n), t = Matrix::Zero(steps, steps);
  basis.row(0) = random_direction(n, Rng(1)).transpose();
  Index m = 0;
  double beta = 0.0;
  for (; m < steps; ++m) {
    Vector w = times(g, basis.row(m).transpose(), threads);
    t(m, m) = basis.row(m).dot(w);
    for (int twice = 0; twice < 2; ++twice)
      w -= basis.topRows(m + 1).transpose() * (basis.topRows(m + 1) * w);
    beta = w.norm();
    if (m + 1 == steps || !(beta > 1e-14 * std::abs(t(0, 0)))) break;
    t(m + 1, m) = t(m, m + 1) = beta;
    basis.row(m + 1) = w.transpose() / beta;
  }
  const Matrix small_t = t.topLeftCorner(m + 1, m + 1);
  const SymmetricEigen eigen = symmetric_eigen(small_t);
  const double value = eigen.values[m];
  return {value,
          value > 0.0 ? beta * std::abs(eigen.vectors(m, m)) / value : 0.0};
}

}  // namespace lipscope
