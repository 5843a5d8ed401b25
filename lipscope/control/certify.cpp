#include "lipscope/control/certify.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// the smallest change at which the gain is asked for: what it says there holds
// for smaller ones as well
constexpr double smallest = 1e-300;

// what a sum of logarithms may have lost, on the safe side
double log_below(double log) { return log - 1e-12 * (1.0 + std::abs(log)); }

// r gain(r) < limit, for sure
bool within(double r, const std::optional<Magnitude>& gain, double limit) {
  return gain && (Magnitude(r) * *gain).log10() < log_below(std::log10(limit));
}

}  // namespace

CertifiedRadius certified_radius(const Vector& hidden, const Readout& readout,
                                 const Gain& gain) {
  require_sound(readout);
  CertifiedRadius c;
  c.character = predicted(hidden, readout);
  c.hidden_radius = std::numeric_limits<double>::infinity();
  const double length = length_above(hidden);
  const auto bias = [&](Index b) {
    return readout.bias.size() > 0 ? readout.bias[b] : 0.0;
  };
  for (Index b = 0; b < readout.weight.cols(); ++b) {
    if (b == c.character) continue;
    const Vector apart =
        readout.weight.col(c.character) - readout.weight.col(b);
    const double distance = length_above(apart);
    const double margin = hidden.dot(apart) + (bias(c.character) - bias(b));
    const double sure =
        margin - 1e-9 * (length * distance + std::abs(bias(c.character)) +
                         std::abs(bias(b)));
    // equal columns never part: the one leads by its bias for ever, or neither
    // leads the other
    if (distance == 0.0 && sure > 0.0) continue;
    const double radius = sure > 0.0 ? sure / distance * (1.0 - 0x1p-40) : 0.0;
    if (radius < c.hidden_radius) {
      c.hidden_radius = radius;
      c.runner_up = b;
      c.margin = margin;
    }
  }

  c.log10 = -std::numeric_limits<double>::infinity();
  const std::optional<Magnitude> least = gain(smallest);
  c.proved = least.has_value();
  if (!c.proved) return c;
  // (a gain of 0 would have no logarithm; a larger one is as sure)
  c.gain_log10 = std::max(least->log10(), std::log10(smallest));
  if (c.hidden_radius == 0.0) return c;
  // the gain does not fall: no radius is above this, and this is one if it is
  // below `smallest`
  double high = log_below(std::log10(c.hidden_radius) - c.gain_log10);
  if (high <= std::log10(smallest)) {
    c.log10 = high;
    return c;
  }
  // log10 of a radius that is proved, and of one that may not be
  double low = std::log10(smallest);
  const auto proved = [&](double log) {
    const double r = std::pow(10.0, log);
    return within(r, gain(r), c.hidden_radius);
  };
  high = log_below(high);
  if (proved(high)) low = high;
  while (high - low > 1e-10) {
    const double middle = 0.5 * (low + high);
    (proved(middle) ? low : high) = middle;
  }
  c.radius = std::pow(10.0, low) * (1.0 - 0x1p-40);
  c.log10 = log_below(std::log10(c.radius));
  c.gain_log10 = gain(c.radius)->log10();
  return c;
}

}  // namespace lipscope
