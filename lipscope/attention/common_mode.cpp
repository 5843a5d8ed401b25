#include "lipscope/attention/common_mode.h"

#include <utility>

#include "lipscope/core/gemm.h"
#include "lipscope/spectral/golub_kahan.h"

namespace lipscope {

template <class Real>
CommonMode<Real>::CommonMode(ConstView<Real> query, ConstView<Real> value,
                             ConstView<Real> output,
                             std::vector<MatrixOf<Real>> covariances,
                             Index sequences, int threads)
    : query_(query),
      value_(value),
      output_(output),
      covariances_(std::move(covariances)),
      sequences_(sequences),
      threads_(threads) {}

template <class Real>
Index CommonMode<Real>::rows() const {
  return sequences_ * (output_.size() > 0 ? output_.cols() : value_.cols());
}

template <class Real>
Index CommonMode<Real>::cols() const {
  return sequences_ * value_.rows();
}

template <class Real>
VectorOf<Real> CommonMode<Real>::apply(const VectorOf<Real>& v) const {
  const ConstView<Real> shift = unflatten(v, sequences_, value_.rows());
  MatrixOf<Real> y = product(as_is(shift), as_is(value_), threads_);
  if (!covariances_.empty()) {
    const MatrixOf<Real> q = product(as_is(shift), as_is(query_), threads_);
    const Index heads = static_cast<Index>(covariances_.size()) / sequences_;
    const Index k = q.cols() / heads, w = y.cols() / heads;
    for (Index s = 0; s < sequences_; ++s)
      for (Index h = 0; h < heads; ++h)
        y.row(s).segment(h * w, w) +=
            q.row(s).segment(h * k, k) * covariances_[s * heads + h];
  }
  if (output_.size() == 0) return flatten(y);
  return flatten(product(as_is(y), as_is(output_), threads_));
}

template <class Real>
VectorOf<Real> CommonMode<Real>::apply_adjoint(const VectorOf<Real>& u) const {
  // the lines of apply, transposed and in reverse
  const ConstView<Real> g = unflatten(u, sequences_, rows() / sequences_);
  const MatrixOf<Real> gy =
      output_.size() == 0 ? MatrixOf<Real>(g)
                          : product(as_is(g), transposed(output_), threads_);
  MatrixOf<Real> gx = product(as_is(gy), transposed(value_), threads_);
  if (!covariances_.empty()) {
    const Index heads = static_cast<Index>(covariances_.size()) / sequences_;
    const Index k = query_.cols() / heads, w = gy.cols() / heads;
    MatrixOf<Real> gq(sequences_, query_.cols());
    for (Index s = 0; s < sequences_; ++s)
      for (Index h = 0; h < heads; ++h)
        gq.row(s).segment(h * k, k) = gy.row(s).segment(h * w, w) *
                                      covariances_[s * heads + h].transpose();
    gx += product(as_is(gq), transposed(query_), threads_);
  }
  return flatten(gx);
}

template <class Real>
MatrixOf<Real> most_stretched_shift(const CommonMode<Real>& mode,
                                    Index sequences) {
  const Index d = mode.cols() / sequences;
  const std::vector<NormEstimate> found = golub_kahan(
      mode, sequences, {.tolerance = 3e-3, .max_steps = 20, .threads = 1});
  MatrixOf<Real> shifts(sequences, d);
  for (Index s = 0; s < sequences; ++s)
    shifts.row(s) = found[s].direction.transpose().template cast<Real>();
  return shifts;
}

template class CommonMode<float>;
template class CommonMode<double>;
template MatrixOf<float> most_stretched_shift(const CommonMode<float>&, Index);
template MatrixOf<double> most_stretched_shift(const CommonMode<double>&,
                                               Index);

}  // namespace lipscope
