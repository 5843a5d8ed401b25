#include "tests/campaign/measured.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/spectral/dense.h"

namespace lipscope::campaign {

Matrix reference_jacobian(const AttentionWeights& weights,
                          const AttentionOptions& options, const Matrix& x) {
  const MultiHeadAttention<double> map(weights, options);
  const auto applied = map.linearize(x);
  return options.query_key_norm && options.query_key_norm->over_heads
             ? materialize(*applied)
             : dense_jacobian(weights, options, x);
}

double two_norm(const Matrix& j, bool quick) {
  if (!quick) return dense_norm(j).value;
  const double scale = j.cwiseAbs().maxCoeff();
  if (scale == 0.0) return 0.0;
  const Matrix a = j / scale;
  const Matrix gram = a.rows() >= a.cols() ? Matrix(a.transpose() * a)
                                           : Matrix(a * a.transpose());
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(gram,
                                                    Eigen::EigenvaluesOnly);
  return scale * std::sqrt(std::max(0.0, eigen.eigenvalues()[gram.rows() - 1]));
}

double inf_norm(const Matrix& j) {
  return j.cwiseAbs().rowwise().sum().maxCoeff();
}

double token_norm(const Matrix& j, Index n, const Rng& rng) {
  const Index e = j.rows() / n, d = j.cols() / n;
  double best = 0.0;
  for (Index i = 0; i < n; ++i) {
    const Matrix rows = j.middleRows(i * e, e);
    Vector u = random_direction(e, rng.split(i));
    for (int step = 0; step < 6; ++step) {
      Vector v = rows.transpose() * u;
      for (Index t = 0; t < n; ++t) {
        const double length = v.segment(t * d, d).norm();
        if (length > 0.0) v.segment(t * d, d) /= length;
      }
      const Vector y = rows * v;
      best = std::max(best, y.norm());
      if (y.norm() > 0.0) u = y / y.norm();
    }
  }
  return best;
}

double row_norm(const Matrix& j, Index n) {
  const Index e = j.rows() / n;
  double most = 0.0;
  for (Index i = 0; i < n; ++i)
    most = std::max(most, two_norm(j.middleRows(i * e, e)));
  return most;
}

}  // namespace lipscope::campaign
