#pragma once

#include <cstdint>

#include "lipscope/operators/linear_operator.h"

/// How a residual map changes volumes: log|det(I + A)| with A = cJ, J the
/// Jacobian of f in g(X) = X + c f(X).
namespace lipscope {

struct LogDetOptions {
  /// ρ(A) ≤ q < 1, proved; any induced norm bounds the spectral radius ρ.
  double contraction = 0.5;
  int probes = 16;  ///< at least 2
  int terms = 0;    ///< K; 0: as many as bring `truncation` below this:
  double truncation = 1e-3;
  double confidence = 0.95;  ///< of the error bar
  std::uint64_t seed = 0;
  int threads = 0;  ///< over probes; 0: all cores
};

/// An estimate, what was cut off, and how far chance may have moved it.
struct LogDet {
  double value = 0.0;
  double truncation = 0.0;  ///< of the cut series, from above
  /// Half the length of Student's interval around `value` at the confidence
  /// asked: an error bar for what is nearly normal, not a bound.
  double error_bar = 0.0;
  int terms = 0, probes = 0;
};

/// log det(I + A) = Σ_{k≥1} (−1)^{k+1} tr(Aᵏ)/k, cut after K terms, with each
/// trace as the mean of vᵀAᵏv over vectors v of random signs [Hutchinson90;
/// Chen19]. With N eigenvalues |λ| ≤ q what is cut is at most
///
///   Σ_{k>K} N qᵏ/k ≤ N q^{K+1}/((K+1)(1−q)).
///
/// The determinant is positive: every eigenvalue of I + A is within q of 1.
LogDet log_det(const LinearOperator<double>& a, const LogDetOptions& options);

/// log|det(I + A)| by the LU factorisation of the dense matrix; for small
/// problems. −∞ where it is singular.
double log_det_dense(const LinearOperator<double>& a);

}  // namespace lipscope
