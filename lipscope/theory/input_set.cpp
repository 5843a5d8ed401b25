#include "lipscope/theory/input_set.h"

#include <fmt/format.h>

#include <stdexcept>

namespace lipscope {

InputSet InputSet::one() { return {Kind::one, 0.0}; }
InputSet InputSet::ball(double radius) { return {Kind::ball, radius}; }
InputSet InputSet::after_norm_layer(double radius) {
  return {Kind::after_norm_layer, radius};
}
InputSet InputSet::everywhere() { return {Kind::everywhere, 0.0}; }

std::string name_of(const InputSet& set) {
  switch (set.kind_) {
    case InputSet::Kind::one:
      return "at this input";
    case InputSet::Kind::ball:
      return fmt::format("ball of radius {:.6g}", set.radius_);
    case InputSet::Kind::after_norm_layer:
      return fmt::format("ball of radius {:.6g}, after the norm layer",
                         set.radius_);
    case InputSet::Kind::everywhere:
      return "everywhere";
  }
  throw std::logic_error("a set of inputs without a name");
}

}  // namespace lipscope
