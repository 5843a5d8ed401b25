#pragma once

#include <cmath>
#include <limits>

namespace lipscope::test {

/// What rounding can do to a sum of `terms` numbers of size one in Real: a
/// relative tolerance that follows from the precision and the size, with a
/// factor for the handful of operations each term goes through.
template <class Real>
double rounding(double terms, double factor = 8.0) {
  return factor * std::sqrt(terms) * std::numeric_limits<Real>::epsilon();
}

}  // namespace lipscope::test
