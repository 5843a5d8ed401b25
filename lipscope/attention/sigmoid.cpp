#include "lipscope/attention/sigmoid.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> sigmoid_rows(MatrixOf<Real> scores, Mask mask, Real shift) {
  const Index n = scores.cols();
  for (Index i = 0; i < scores.rows(); ++i) {
    const Index seen_count = visible(mask, i, n);
    auto seen = scores.row(i).head(seen_count);
    seen.array() = 1 / (1 + (-shift - seen.array()).exp());
    scores.row(i).tail(n - seen_count).setZero();
  }
  return scores;
}

template <class Real>
MatrixOf<Real> sigmoid_derivative(const MatrixOf<Real>& p, MatrixOf<Real> t) {
  t.array() *= p.array() * (1 - p.array());
  return t;
}

template MatrixOf<float> sigmoid_rows(MatrixOf<float>, Mask, float);
template MatrixOf<double> sigmoid_rows(MatrixOf<double>, Mask, double);
template MatrixOf<float> sigmoid_derivative(const MatrixOf<float>&,
                                            MatrixOf<float>);
template MatrixOf<double> sigmoid_derivative(const MatrixOf<double>&,
                                             MatrixOf<double>);

}  // namespace lipscope
