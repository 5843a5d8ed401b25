#include "lipscope/theory/bound.h"

#include <cmath>

namespace lipscope {

Bound make_bound(const Statement& s, Magnitude value, const InputSet& scope) {
  return {.name = s.name,
          .value = value.value(),
          .log10 = value.log10(),
          .norm = s.norm,
          .scope = scope,
          .mask = s.mask,
          .citation = s.citation};
}

Magnitude magnitude_of(const Bound& b) {
  if (std::isfinite(b.value)) return b.value;
  return exp_of(well_above(b.log10 * std::log(10.0)));
}

bool speaks_of(const Bound& b, Norm norm) {
  return b.norm == norm || (b.norm == Norm::w2 && norm == Norm::two);
}

}  // namespace lipscope
