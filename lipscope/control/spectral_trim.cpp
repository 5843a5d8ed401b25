#include "lipscope/control/spectral_trim.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> leading_directions(const MatrixOf<Real>& w, double norm) {
  require(norm > 0.0, "leading_directions: a norm of {}", norm);
  const MatrixOf<Real> unit = w / static_cast<Real>(norm);
  MatrixOf<Real> y = product<Real>(transposed(unit), as_is(unit), 1);
  for (int square = 0; square < 4; ++square)
    y = product<Real>(as_is(y), as_is(y), 1);
  return y;
}

template <class Real>
MatrixOf<Real> spectral_trim(const MatrixOf<Real>& w, double norm,
                             double share) {
  require(share >= 0.0 && share <= most_trimmed, "spectral_trim: a share of {}",
          share);
  if (w.rows() < w.cols())
    return spectral_trim<Real>(w.transpose(), norm, share).transpose();
  const MatrixOf<Real> y = leading_directions(w, norm);
  return w - static_cast<Real>(share) * product<Real>(as_is(w), as_is(y), 1);
}

template MatrixOf<float> leading_directions(const MatrixOf<float>&, double);
template MatrixOf<double> leading_directions(const MatrixOf<double>&, double);
template MatrixOf<float> spectral_trim(const MatrixOf<float>&, double, double);
template MatrixOf<double> spectral_trim(const MatrixOf<double>&, double,
                                        double);

}  // namespace lipscope
