#include "lipscope/record/known_by.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::string name_of(Procedure procedure) {
  switch (procedure) {
    case Procedure::reconstruction:
      return "reconstruction";
    case Procedure::a_posteriori:
      return "a-posteriori";
    case Procedure::attack:
      return "attack";
    case Procedure::deviation:
      return "deviation";
    case Procedure::exact_transport:
      return "exact-transport";
    case Procedure::formula:
      return "formula";
    case Procedure::finite_difference:
      return "finite-difference";
    case Procedure::row_sum:
      return "row-sum";
  }
  throw std::logic_error("a procedure without a name");
}

KnownBy KnownBy::bound(const std::string& name) { return KnownBy(name); }

KnownBy KnownBy::deviation(const std::string& bound) {
  return KnownBy(name_of(Procedure::deviation) + "(" + bound + ")");
}

KnownBy KnownBy::at(const std::string& input) const {
  return KnownBy(input + ", " + name_);
}

}  // namespace lipscope
