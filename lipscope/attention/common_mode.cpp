#include "lipscope/attention/common_mode.h"

#include <utility>

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/gemm.h"
#include "lipscope/operators/compose.h"

namespace lipscope {

template <class Real>
CommonMode<Real>::CommonMode(Factors factors,
                             std::vector<MatrixOf<Real>> covariances,
                             Index sequences, int threads)
    : factors_(factors),
      covariances_(std::move(covariances)),
      sequences_(sequences),
      threads_(threads) {}

template <class Real>
Index CommonMode<Real>::rows() const {
  return sequences_ *
         (factors_.mix ? factors_.mix->factor().cols() : factors_.values);
}

template <class Real>
Index CommonMode<Real>::cols() const {
  return sequences_ * factors_.project->factor().rows();
}

template <class Real>
VectorOf<Real> CommonMode<Real>::apply(const VectorOf<Real>& v) const {
  const ConstView<Real> shift = unflatten(v, sequences_, v.size() / sequences_);
  const MatrixOf<Real> projected =
      product(as_is(shift), *factors_.project, threads_);
  MatrixOf<Real> y = projected.rightCols(factors_.values);
  if (!covariances_.empty()) {
    const Index heads = static_cast<Index>(covariances_.size()) / sequences_;
    const Index k = factors_.queries / heads, w = factors_.values / heads;
    for (Index s = 0; s < sequences_; ++s)
      for (Index h = 0; h < heads; ++h) {
        const VectorOf<Real> q = projected.row(s).segment(h * k, k);
        const VectorOf<Real> moved =
            covariances_[s * heads + h].transpose() * q;
        y.row(s).segment(h * w, w) += moved.transpose();
      }
  }
  if (!factors_.mix) return flatten(y);
  return flatten(product(as_is(y), *factors_.mix, threads_));
}

template <class Real>
VectorOf<Real> CommonMode<Real>::apply_adjoint(const VectorOf<Real>& u) const {
  // the lines of apply, transposed and in reverse
  const ConstView<Real> g = unflatten(u, sequences_, u.size() / sequences_);
  const MatrixOf<Real> gy = factors_.unmix
                                ? product(as_is(g), *factors_.unmix, threads_)
                                : MatrixOf<Real>(g);
  MatrixOf<Real> projected =
      MatrixOf<Real>::Zero(sequences_, factors_.unproject->factor().rows());
  projected.rightCols(factors_.values) = gy;
  if (!covariances_.empty()) {
    const Index heads = static_cast<Index>(covariances_.size()) / sequences_;
    const Index k = factors_.queries / heads, w = factors_.values / heads;
    for (Index s = 0; s < sequences_; ++s)
      for (Index h = 0; h < heads; ++h) {
        const VectorOf<Real> moved = gy.row(s).segment(h * w, w);
        const VectorOf<Real> q = covariances_[s * heads + h] * moved;
        projected.row(s).segment(h * k, k) = q.transpose();
      }
  }
  return flatten(product(as_is(projected), *factors_.unproject, threads_));
}

template <class Real>
CommonShiftAt<Real> common_shift_of(const Map<Real>& f) {
  const auto* attention =
      dynamic_cast<const MultiHeadAttention<Real>*>(&first_map(f));
  if (!attention) return {};
  const bool alone = attention == &f;
  return [=](const LinearOperator<Real>& J, const MatrixOf<Real>& x) {
    return alone ? attention->common_shift(J)
                 : attention->common_shift(*attention->linearize(x));
  };
}

template class CommonMode<float>;
template class CommonMode<double>;
template CommonShiftAt<float> common_shift_of(const Map<float>&);
template CommonShiftAt<double> common_shift_of(const Map<double>&);

}  // namespace lipscope
