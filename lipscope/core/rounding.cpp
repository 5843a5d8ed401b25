#include "lipscope/core/rounding.h"

#include <cmath>
#include <limits>

namespace lipscope {

double next_above(double x) {
  return x == 0.0 ? 0.0
                  : std::nextafter(x, std::numeric_limits<double>::infinity());
}

double well_above(double x) { return next_above(x * (1.0 + 0x1p-44)); }

}  // namespace lipscope
