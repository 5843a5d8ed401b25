#include "lipscope/spectral/dense.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/core/symmetric_eigen.h"

namespace lipscope {

DenseNorm dense_norm(const Matrix& a) {
  require(a.size() > 0, "dense_norm: a [{}x{}] matrix", a.rows(), a.cols());
  require(a.allFinite(), "dense_norm: the [{}x{}] matrix is not finite",
          a.rows(), a.cols());
  const double scale = a.cwiseAbs().maxCoeff();
  if (scale == 0.0) return {.direction = Vector::Unit(a.cols(), 0)};

  // entries of size one: no square leaves the range of double
  const Matrix scaled = a / scale;
  const bool tall = a.rows() >= a.cols();
  const Matrix gram = tall ? Matrix(scaled.transpose() * scaled)
                           : Matrix(scaled * scaled.transpose());
  const SymmetricEigen eigen = symmetric_eigen(gram);
  const Index last = gram.rows() - 1;
  const double largest = eigen.values[last];
  if (!eigen.converged || !(largest > 0.0))
    throw RunError(fmt::format(
        "dense_norm: no eigenvalue of the Gram matrix of a [{}x{}] matrix "
        "(entries up to {}) found",
        a.rows(), a.cols(), scale));

  Vector v = eigen.vectors.col(last);
  if (!tall) v = scaled.transpose() * v;
  v.normalize();

  const double longer = static_cast<double>(std::max(a.rows(), a.cols()));
  const double upper =
      std::sqrt(largest * (1.0 + 8.0 * longer * unit_roundoff) +
                1.01 * longer * unit_roundoff * scaled.squaredNorm());
  const double second =
      last > 0 ? std::sqrt(std::max(0.0, eigen.values[last - 1])) : 0.0;
  const DenseNorm norm{.value = scale * (scaled * v).norm(),
                       .upper = scale * upper,
                       .second = scale * second,
                       .direction = v};
  if (!std::isfinite(norm.upper))
    throw RunError(
        fmt::format("dense_norm: the norm of a [{}x{}] matrix with "
                    "entries up to {} does not fit a double",
                    a.rows(), a.cols(), scale));
  return norm;
}

}  // namespace lipscope
