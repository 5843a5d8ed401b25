#pragma once

#include <Eigen/SVD>
#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"

/// Layers with one feature, and their Jacobians, for values that the theory
/// gives by hand.
namespace lipscope::test {

inline Matrix scalar(double a) { return Matrix::Constant(1, 1, a); }

inline Matrix column(std::initializer_list<double> tokens) {
  Matrix x(static_cast<Index>(tokens.size()), 1);
  Index i = 0;
  for (const double t : tokens) x(i++, 0) = t;
  return x;
}

inline Matrix jacobian(const AttentionWeights& weights,
                       AttentionOptions options, const Matrix& x) {
  return materialize(
      *MultiHeadAttention<double>(weights, std::move(options)).linearize(x));
}

inline double norm2(const Matrix& m) {
  return Eigen::JacobiSVD<Matrix>(m).singularValues()[0];
}

inline double norm_inf(const Matrix& m) {
  return m.cwiseAbs().rowwise().sum().maxCoeff();
}

inline AttentionWeights one_by_one(double q, double k, double v) {
  AttentionWeights w;
  w.query = scalar(q);
  w.key = scalar(k);
  w.value = scalar(v);
  return w;
}

inline AttentionWeights tied(double q, double v) {
  AttentionWeights w = one_by_one(q, 0, v);
  w.key = Matrix();
  return w;
}

}  // namespace lipscope::test
