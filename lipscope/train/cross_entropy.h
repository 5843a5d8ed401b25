#pragma once

#include <span>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// −log softmax(logits)[target] of each row, in nats, summed in double over the
/// rows. With it the gradient of their mean, by the logits:
///
///   (softmax(logits) − onehot(target))/rows
template <class Real>
double cross_entropy(const MatrixOf<Real>& logits, std::span<const int> targets,
                     int threads = 1);
template <class Real>
MatrixOf<Real> cross_entropy_backward(const MatrixOf<Real>& logits,
                                      std::span<const int> targets,
                                      int threads = 1);

/// Of how many rows the target has the largest logit; of equal ones the first
/// counts.
template <class Real>
Index likeliest(const MatrixOf<Real>& logits, std::span<const int> targets);

}  // namespace lipscope
