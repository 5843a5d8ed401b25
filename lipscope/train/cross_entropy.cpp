#include "lipscope/train/cross_entropy.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/softmax.h"

namespace lipscope {

template <class Real>
double cross_entropy(const MatrixOf<Real>& logits,
                     std::span<const int> targets) {
  double sum = 0.0;
  for (Index i = 0; i < logits.rows(); ++i) {
    const Real largest = logits.row(i).maxCoeff();
    sum += std::log(static_cast<double>(
               (logits.row(i).array() - largest).exp().sum())) -
           static_cast<double>(logits(i, targets[i]) - largest);
  }
  return sum;
}

template <class Real>
MatrixOf<Real> cross_entropy_backward(MatrixOf<Real> logits,
                                      std::span<const int> targets) {
  MatrixOf<Real> g = softmax_rows(std::move(logits), Mask::none);
  for (Index i = 0; i < g.rows(); ++i) g(i, targets[i]) -= 1;
  return g / static_cast<Real>(g.rows());
}

template double cross_entropy(const MatrixOf<float>&, std::span<const int>);
template double cross_entropy(const MatrixOf<double>&, std::span<const int>);
template MatrixOf<float> cross_entropy_backward(MatrixOf<float>,
                                                std::span<const int>);
template MatrixOf<double> cross_entropy_backward(MatrixOf<double>,
                                                 std::span<const int>);

}  // namespace lipscope
