#pragma once

#include "lipscope/attention/weights.h"

namespace lipscope {

/// Sigmoid attention weights [Ramapuram24]: σ(s + b) for each token a row sees,
/// exactly 0 for the hidden ones. The rows do not sum to one.
template <class Real>
MatrixOf<Real> sigmoid_rows(MatrixOf<Real> scores, const Mask& mask,
                            Real shift);

/// The slope of the weights at t = s + b, entry by entry: e/(1 + e)², e =
/// exp(−|t|). Made of a rounded p, p(1 − p) would lose what 1 − p is near p
/// = 1.
template <class Numbers>
typename Numbers::PlainObject sigmoid_slope(const Numbers& t) {
  const typename Numbers::PlainObject e = (-t.abs()).exp();
  return e / (1 + e).square();
}

/// The product of t with the derivative, entry by entry, 0 for hidden tokens.
/// It is diagonal: the same function serves tangents and gradients.
template <class Real>
MatrixOf<Real> sigmoid_derivative(const MatrixOf<Real>& scores,
                                  const Mask& mask, Real shift,
                                  MatrixOf<Real> t);

}  // namespace lipscope
