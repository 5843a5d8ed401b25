#pragma once

#include <string>

#include "lipscope/core/rounding.h"

namespace lipscope {

/// A number ≥ 0 known from above: every operation rounds upwards, so that what
/// comes out is never below what exact arithmetic on the inputs would give.
/// Beyond the range of double the value is +∞ and the logarithm goes on.
///
/// There is no subtraction and no division: neither keeps the side.
class Magnitude {
 public:
  /// A finite number ≥ 0 that is itself from above (or exact).
  Magnitude(double x);  // NOLINT: formulas mix numbers and magnitudes

  double value() const { return value_; }  ///< may be +∞
  double log10() const;                    ///< −∞ for 0; else always finite

  friend Magnitude operator+(Magnitude a, Magnitude b);
  friend Magnitude operator*(Magnitude a, Magnitude b);
  friend Magnitude root(Magnitude a);  ///< √a
  friend Magnitude exp_of(double x);   ///< eˣ for a finite x from above
  friend bool operator<(Magnitude a, Magnitude b);

 private:
  Magnitude(double value, double log) : value_(value), log_(log) {}
  double value_, log_;  // natural logarithm
};

Magnitude root(Magnitude a);
Magnitude exp_of(double x);

/// The smaller of two bounds on the same thing.
Magnitude smaller(Magnitude a, Magnitude b);

}  // namespace lipscope
