#include "lipscope/attention/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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
      first.cwiseProduct(cos) - z.middleCols(half, half).cwiseProduct(sin);
  z.middleCols(half, half) =
      first.cwiseProduct(sin) + z.middleCols(half, half).cwiseProduct(cos);
}

Index turned_width(const Rotary& rotary, Index head_width) {
  return rotary.width == 0 ? head_width : rotary.width;
}

}  // namespace

Vector frequencies(const Rotary& rotary, Index head_width) {
  const Index width = turned_width(rotary, head_width);
  Vector f(width / 2);
  for (Index i = 0; i < width / 2; ++i) {
    f[i] = std::pow(rotary.theta, -2.0 * static_cast<double>(i) / width);
    double kept = 0.0;  // of the speed; the rest is divided by the factor
    if (rotary.slow) {
      const double turns = rotary.slow->context * f[i] / (2 * std::numbers::pi);
      kept = std::clamp(
          (turns - rotary.slow->slow) / (rotary.slow->fast - rotary.slow->slow),
          0.0, 1.0);
    }
    if (rotary.factor != 1.0)
      f[i] = (1 - kept) * f[i] / rotary.factor + kept * f[i];
  }
  return f;
}

template <class Real>
Rope<Real>::Rope(Index n, Index head_width, const Rotary& rotary) {
  const Vector f = frequencies(rotary, head_width);
  cos_.resize(n, f.size());
  sin_.resize(n, f.size());
  for (Index i = 0; i < f.size(); ++i)
    for (Index p = 0; p < n; ++p) {
      const double angle = static_cast<double>(p) * f[i];
      cos_(p, i) = static_cast<Real>(std::cos(angle));
      sin_(p, i) = static_cast<Real>(std::sin(angle));
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

template <class Real>
void Rope<Real>::unrotate_at(Index position, MatrixOf<Real>& z) const {
  turn<Real>(cos_.row(position).replicate(z.rows(), 1),
             -sin_.row(position).replicate(z.rows(), 1), z);
}

void require_rotatable(const Rotary& rotary, Index head_width, Kind kind) {
  const auto positive = [](const char* what, double number) {
    require(std::isfinite(number) && number > 0,
            "rope: the {} is {}, expected a positive number", what, number);
  };
  positive("base", rotary.theta);
  positive("factor", rotary.factor);
  if (rotary.slow) {
    positive("context", rotary.slow->context);
    require(rotary.slow->fast > rotary.slow->slow,
            "rope: planes of {} turns are slow and of {} are not",
            rotary.slow->slow, rotary.slow->fast);
  }
  const Index width = turned_width(rotary, head_width);
  require(width >= 0 && width <= head_width,
          "rope: {} features of a head of {} cannot be rotated", width,
          head_width);
  require(width % 2 == 0, "rope: heads of odd width {} cannot be rotated",
          width);
  const std::string_view refused = kind_of(kind).no_rope;
  require(refused.empty(), "rope: {}", refused);
}

template class Rope<float>;
template class Rope<double>;

}  // namespace lipscope
