#include "lipscope/theory/magnitude.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// a logarithm that went through a few operations, moved up by their rounding
double log_above(double log) {
  return std::isinf(log) ? log : log + 0x1p-50 * (1.0 + std::abs(log));
}

}  // namespace

Magnitude::Magnitude(double x) : value_(x), log_(log_above(std::log(x))) {
  require(x >= 0.0 && std::isfinite(x), "magnitude: {} is not a size", x);
}

double Magnitude::log10() const {
  if (value_ > 0.0 && std::isfinite(value_))
    return log_above(std::log10(value_));
  return log_above(log_ / std::log(10.0));
}

Magnitude operator+(Magnitude a, Magnitude b) {
  if (a.value_ == 0.0) return b;
  if (b.value_ == 0.0) return a;
  const double most = std::max(a.log_, b.log_);
  const double least = std::min(a.log_, b.log_);
  return {next_above(a.value_ + b.value_),
          log_above(most + std::log1p(std::exp(least - most)))};
}

Magnitude operator*(Magnitude a, Magnitude b) {
  if (a.value_ == 0.0 || b.value_ == 0.0) return {0.0, -infinity};
  // a product that underflows is still positive
  const double product = next_above(
      std::max(a.value_ * b.value_, std::numeric_limits<double>::denorm_min()));
  return {product, log_above(a.log_ + b.log_)};
}

Magnitude root(Magnitude a) {
  return {next_above(std::sqrt(a.value_)), log_above(a.log_ / 2)};
}

Magnitude exp_of(double x) {
  require(std::isfinite(x), "exp_of: {}", x);
  // the library's exp errs by less than one unit in the last place
  return {next_above(next_above(std::exp(x))), log_above(x)};
}

bool operator<(Magnitude a, Magnitude b) {
  return std::isfinite(a.value_) || std::isfinite(b.value_)
             ? a.value_ < b.value_
             : a.log_ < b.log_;
}

Magnitude smaller(Magnitude a, Magnitude b) { return b < a ? b : a; }

}  // namespace lipscope
