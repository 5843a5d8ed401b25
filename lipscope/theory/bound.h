#pragma once

#include <string>

#include "lipscope/theory/magnitude.h"

namespace lipscope {

/// A Lipschitz constant from above, and what it speaks of.
struct Bound {
  std::string name;      ///< the paper and what, "castin24_ball", or the idea,
                         ///< "column_sums"
  double value = 0.0;    ///< never below the constant; +∞ beyond double
  double log10 = 0.0;    ///< of the value, finite where the value is not
  std::string norm;      ///< "2", "inf", "token"; "w2" holds for "2" as well
  std::string scope;     ///< "at this input", "ball of radius 3", "everywhere"
  std::string mask;      ///< for which it is proved: "any", "none", "causal"
  std::string citation;  ///< the paper and the statement
};

/// The part of a bound that does not depend on numbers.
struct Statement {
  std::string name, norm, mask, citation;
};

Bound make_bound(const Statement& statement, Magnitude value,
                 std::string scope);

/// The value, to multiply with others; beyond double by its logarithm.
Magnitude magnitude_of(const Bound& bound);

/// Whether b bounds the constant in that norm. A constant in W₂ over measures,
/// or in the conditional distance, bounds the one in the 2-norm over sequences
/// of every length: equal masses make ‖X − Y‖_F/√n of the distance.
bool speaks_of(const Bound& b, const std::string& norm);

}  // namespace lipscope
