#include "lipscope/train/cross_entropy.h"

#include <cmath>

#include "lipscope/train/pass.h"

namespace lipscope {

template <class Real>
double cross_entropy(const MatrixOf<Real>& logits, std::span<const int> targets,
                     int threads) {
  Vector each(logits.rows());
  for_row_pieces(logits.rows(), threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      const Real largest = logits.row(i).maxCoeff();
      each[i] = std::log(static_cast<double>(
                    (logits.row(i).array() - largest).exp().sum())) -
                static_cast<double>(logits(i, targets[i]) - largest);
    }
  });
  return each.sum();
}

template <class Real>
MatrixOf<Real> cross_entropy_backward(const MatrixOf<Real>& logits,
                                      std::span<const int> targets,
                                      int threads) {
  MatrixOf<Real> g(logits.rows(), logits.cols());
  const Real rows = static_cast<Real>(logits.rows());
  for_row_pieces(logits.rows(), threads, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      auto row = g.row(i);
      row.array() = (logits.row(i).array() - logits.row(i).maxCoeff()).exp();
      row /= row.sum() * rows;
      row[targets[i]] -= 1 / rows;
    }
  });
  return g;
}

template <class Real>
Index likeliest(const MatrixOf<Real>& logits, std::span<const int> targets) {
  Index right = 0;
  for (Index i = 0; i < logits.rows(); ++i) {
    Index best = 0;
    logits.row(i).maxCoeff(&best);
    if (best == targets[i]) ++right;
  }
  return right;
}

template Index likeliest(const MatrixOf<float>&, std::span<const int>);
template Index likeliest(const MatrixOf<double>&, std::span<const int>);
template double cross_entropy(const MatrixOf<float>&, std::span<const int>,
                              int);
template double cross_entropy(const MatrixOf<double>&, std::span<const int>,
                              int);
template MatrixOf<float> cross_entropy_backward(const MatrixOf<float>&,
                                                std::span<const int>, int);
template MatrixOf<double> cross_entropy_backward(const MatrixOf<double>&,
                                                 std::span<const int>, int);

}  // namespace lipscope
