#include "lipscope/attention/rope.h"

#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

template <class Real>
void turn(const MatrixOf<Real>& cos, const MatrixOf<Real>& sin,
          MatrixOf<Real>& z) {
  const Index half = cos.cols();
  const MatrixOf<Real> first = z.leftCols(half);
  z.leftCols(half) =
      first.cwiseProduct(cos) - z.rightCols(half).cwiseProduct(sin);
  z.rightCols(half) =
      first.cwiseProduct(sin) + z.rightCols(half).cwiseProduct(cos);
}

}  // namespace

template <class Real>
Rope<Real>::Rope(Index n, Index width, double theta)
    : cos_(n, width / 2), sin_(n, width / 2) {
  for (Index i = 0; i < width / 2; ++i) {
    const double frequency =
        std::pow(theta, -2.0 * static_cast<double>(i) / width);
    for (Index p = 0; p < n; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      cos_(p, i) = static_cast<Real>(std::cos(angle));
      sin_(p, i) = static_cast<Real>(std::sin(angle));
    }
  }
}

template <class Real>
void Rope<Real>::rotate(HeadFeatures<Real>& f) const {
  turn(cos_, sin_, f.q);
  turn(cos_, sin_, f.k);
}

template <class Real>
void Rope<Real>::unrotate(HeadFeatures<Real>& f) const {
  const MatrixOf<Real> back = -sin_;
  turn(cos_, back, f.q);
  turn(cos_, back, f.k);
}

void require_rotatable(double theta, Index width, Kind kind) {
  require(std::isfinite(theta) && theta > 0,
          "rope: the base is {}, expected a positive number", theta);
  require(width % 2 == 0, "rope: heads of odd width {} cannot be rotated",
          width);
  const std::string_view refused = kind_of(kind).no_rope;
  require(refused.empty(), "rope: {}", refused);
}

template class Rope<float>;
template class Rope<double>;

}  // namespace lipscope
