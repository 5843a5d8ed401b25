#pragma once

#include <string>

#include "lipscope/operators/norm.h"
#include "lipscope/theory/input_set.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {

/// A Lipschitz constant from above, and what it speaks of.
struct Bound {
  std::string name;       ///< the paper and what, "castin24_ball", or the idea,
                          ///< "column_sums"
  double value = 0.0;     ///< never below the constant; +∞ beyond double
  double log10 = 0.0;     ///< of the value, finite where the value is not
  Norm norm = Norm::two;  ///< one in w2 holds in the 2-norm as well
  InputSet scope = InputSet::everywhere();  ///< the inputs it holds for
  std::string mask;      ///< for which it is proved: "any", "none", "causal"
  std::string citation;  ///< the paper and the statement
};

/// The part of a bound that does not depend on numbers.
struct Statement {
  std::string name;
  Norm norm = Norm::two;
  std::string mask, citation;
};

Bound make_bound(const Statement& statement, Magnitude value,
                 const InputSet& scope);

/// The value, to multiply with others; beyond double by its logarithm.
Magnitude magnitude_of(const Bound& bound);

/// Whether b bounds the constant in that norm. A constant in W₂ over measures,
/// or in the conditional distance, bounds the one in the 2-norm over sequences
/// of every length: equal masses make ‖X − Y‖_F/√n of the distance.
bool speaks_of(const Bound& b, Norm norm);

}  // namespace lipscope
