#include "lipscope/spectral/dense.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

constexpr double unit = 0x1p-53;

template <class Svd>
DenseNorm norm_of(const Svd& svd) {
  const Vector& s = svd.singularValues();
  const double room =
      8.0 * static_cast<double>(std::max(svd.rows(), svd.cols())) * unit;
  return {.value = s[0],
          .upper = s[0] * (1.0 + room),
          .second = s.size() > 1 ? s[1] : 0.0,
          .direction = svd.matrixV().col(0)};
}

// ‖A v‖ = σ₁ > 0, ‖v‖ = 1 and Σσ² = ‖A‖_F², all but for rounding
template <class Svd>
bool believable(const Matrix& a, const Svd& svd) {
  const Vector& s = svd.singularValues();
  const Vector v = svd.matrixV().col(0);
  const double room = 64.0 * static_cast<double>(a.rows() + a.cols()) * unit;
  // a comparison with NaN is false
  return std::abs(v.norm() - 1.0) <= room &&
         std::abs((a * v).norm() - s[0]) <= room * s[0] &&
         std::abs(s.norm() - a.norm()) <= room * a.norm();
}

}  // namespace

DenseNorm dense_norm(const Matrix& a) {
  require(a.size() > 0, "dense_norm: a [{}x{}] matrix", a.rows(), a.cols());
  require(a.allFinite(), "dense_norm: the [{}x{}] matrix is not finite",
          a.rows(), a.cols());
  const double scale = a.cwiseAbs().maxCoeff();
  if (scale == 0.0) return {.direction = Vector::Unit(a.cols(), 0)};

  // Eigen's own threads would make the bits depend on their number
  const OneThread guard;
  // entries of size one: no square leaves the range of double
  const Matrix scaled = a / scale;
  DenseNorm norm;
  const Eigen::BDCSVD<Matrix> fast(scaled, Eigen::ComputeThinV);
  if (fast.info() == Eigen::Success && believable(scaled, fast)) {
    norm = norm_of(fast);
  } else {
    // divide and conquer has been seen to go wrong; Jacobi is slow and sure
    const Eigen::JacobiSVD<Matrix> sure(scaled, Eigen::ComputeThinV);
    if (sure.info() != Eigen::Success || !believable(scaled, sure))
      throw RunError(fmt::format(
          "dense_norm: no SVD of the [{}x{}] matrix (entries up to {}) found",
          a.rows(), a.cols(), scale));
    norm = norm_of(sure);
  }
  norm.value *= scale, norm.upper *= scale, norm.second *= scale;
  if (!std::isfinite(norm.upper))
    throw RunError(
        fmt::format("dense_norm: the norm of a [{}x{}] matrix with "
                    "entries up to {} does not fit a double",
                    a.rows(), a.cols(), scale));
  return norm;
}

}  // namespace lipscope
