#include "lipscope/theory/regime.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

double least_log10(const std::vector<Bound>& bounds, bool only_without_n) {
  double least = std::numeric_limits<double>::infinity();
  for (const Bound& b : bounds)
    if (!only_without_n || b.norm == Norm::w2) least = std::min(least, b.log10);
  return least;
}

}  // namespace

Regime regime_of(const std::vector<Bound>& at_n,
                 const std::vector<Bound>& at_2n) {
  require(!at_n.empty() && !at_2n.empty(), "regime: there are no bounds");
  const double now = least_log10(at_n, false);
  Regime regime;
  // a layer that is 0 does not grow
  if (std::isfinite(now))
    regime.exponent = (least_log10(at_2n, false) - now) / std::log10(2.0);
  regime.name = now >= least_log10(at_n, true) - std::log10(1.01) ? "mean-field"
                : regime.exponent > 0.25                          ? "sqrt-n"
                                                                  : "saturated";
  return regime;
}

}  // namespace lipscope
