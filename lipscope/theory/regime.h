#pragma once

#include <string>
#include <vector>

#include "lipscope/theory/bound.h"

namespace lipscope {

/// How a bound in the 2-norm grows with the length of the sequence.
struct Regime {
  double exponent = 0.0;  ///< log₂ of the bound at 2n over that at n
  std::string name;       ///< "sqrt-n", "saturated" or "mean-field"
};

/// From the bounds on dot-product attention at n and at 2n tokens that speak of
/// the 2-norm; neither is empty.
///
/// Where the logits of a row lie within 2s of one another, a column of P sums
/// to about n while n ≪ e^{2s} and to no more than e^{2s} ever (under a causal
/// mask that times log n), nor to more than the tokens that a window lets see
/// one, and the bound has the root of that:
///
///   sqrt-n      it grows, with an exponent above 1/4
///   saturated   it hardly does
///   mean-field  it is within 1% of the best bound that does not depend on n
Regime regime_of(const std::vector<Bound>& at_n,
                 const std::vector<Bound>& at_2n);

}  // namespace lipscope
