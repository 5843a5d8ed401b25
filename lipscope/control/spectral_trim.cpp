#include "lipscope/control/spectral_trim.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> leading_directions(const MatrixOf<Real>& w, double norm) {
  require(norm > 0.0, "leading_directions: a norm of {}", norm);
  const MatrixOf<Real> unit = w / static_cast<Real>(norm);
  MatrixOf<Real> y(w.cols(), w.cols()), square(w.cols(), w.cols());
  gemm<Real>(transposed(unit), as_is(unit), view(y));
  for (int power = 1; power < 16; power *= 2) {
    gemm<Real>(as_is(y), as_is(y), view(square));
    y.swap(square);
  }
  return y;
}

template <class Real>
MatrixOf<Real> spectral_trim(const MatrixOf<Real>& w, double norm,
                             double share) {
  require(share >= 0.0 && share <= most_trimmed, "spectral_trim: a share of {}",
          share);
  if (w.rows() < w.cols())
    return spectral_trim<Real>(w.transpose(), norm, share).transpose();
  const MatrixOf<Real> y =
      static_cast<Real>(-share) * leading_directions(w, norm);
  MatrixOf<Real> out = w;
  gemm<Real>(as_is(w), as_is(y), view(out), Into::add);
  return out;
}

template MatrixOf<float> leading_directions(const MatrixOf<float>&, double);
template MatrixOf<double> leading_directions(const MatrixOf<double>&, double);
template MatrixOf<float> spectral_trim(const MatrixOf<float>&, double, double);
template MatrixOf<double> spectral_trim(const MatrixOf<double>&, double,
                                        double);

}  // namespace lipscope
