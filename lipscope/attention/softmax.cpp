#include "lipscope/attention/softmax.h"

#include <utility>

namespace lipscope {

template <class Real>
MatrixOf<Real> softmax_rows(MatrixOf<Real> scores, const Mask& mask) {
  std::vector<TokenRange> seen(scores.rows());
  for (Index i = 0; i < scores.rows(); ++i)
    seen[i] = visible(mask, i, scores.cols());
  return softmax_rows(std::move(scores), seen);
}

template <class Real>
MatrixOf<Real> softmax_rows(MatrixOf<Real> scores,
                            const std::vector<TokenRange>& ranges) {
  const Index n = scores.cols();
  for (Index i = 0; i < scores.rows(); ++i) {
    // Adding −∞ to hidden scores would not do: Eigen's vectorised exp clamps
    // its argument, and exp(−∞) comes out as a denormal (≈ 5e-309), not as 0.
    const TokenRange range = ranges[i];
    auto seen = scores.row(i).segment(range.begin, range.size());
    const Real largest = seen.maxCoeff();
    seen.array() = (seen.array() - largest).exp();
    seen /= seen.sum();
    scores.row(i).head(range.begin).setZero();
    scores.row(i).tail(n - range.end).setZero();
  }
  return scores;
}

template <class Real>
MatrixOf<Real> softmax_derivative(const MatrixOf<Real>& p, MatrixOf<Real> t) {
  // p ∘ (t − ⟨p, t⟩): the mean of t under p is removed, row by row
  for (Index i = 0; i < p.rows(); ++i) {
    const Real mean = p.row(i).dot(t.row(i));
    t.row(i).array() = p.row(i).array() * (t.row(i).array() - mean);
  }
  return t;
}

template MatrixOf<float> softmax_rows(MatrixOf<float>, const Mask&);
template MatrixOf<double> softmax_rows(MatrixOf<double>, const Mask&);
template MatrixOf<float> softmax_rows(MatrixOf<float>,
                                      const std::vector<TokenRange>&);
template MatrixOf<double> softmax_rows(MatrixOf<double>,
                                       const std::vector<TokenRange>&);
template MatrixOf<float> softmax_derivative(const MatrixOf<float>&,
                                            MatrixOf<float>);
template MatrixOf<double> softmax_derivative(const MatrixOf<double>&,
                                             MatrixOf<double>);

}  // namespace lipscope
