#include "lipscope/theory/bound.h"

#include <cmath>
#include <utility>

namespace lipscope {

Bound make_bound(const Statement& s, Magnitude value, std::string scope) {
  return {.name = s.name,
          .value = value.value(),
          .log10 = value.log10(),
          .norm = s.norm,
          .scope = std::move(scope),
          .mask = s.mask,
          .citation = s.citation};
}

Magnitude magnitude_of(const Bound& b) {
  if (std::isfinite(b.value)) return b.value;
  return exp_of(well_above(b.log10 * std::log(10.0)));
}

bool speaks_of(const Bound& b, const std::string& norm) {
  return b.norm == norm || (b.norm == "w2" && norm == "2");
}

}  // namespace lipscope
