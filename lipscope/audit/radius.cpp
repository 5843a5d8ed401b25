#include "lipscope/audit/radius.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/core/number_text.h"

namespace lipscope::audit {

Radius Radius::number(double value) {
  require(value > 0.0 && std::isfinite(value),
          "radius {}: expected a finite number above 0", value);
  return {Kind::number, value};
}

Radius Radius::norm_layer() { return {Kind::norm_layer, 0.0}; }
Radius Radius::everywhere() { return {Kind::everywhere, 0.0}; }

std::string name_of(const Radius& radius) {
  if (radius.is_norm_layer()) return "ln";
  if (radius.is_everywhere()) return "everywhere";
  return fmt::format("{}", radius.value());
}

Radius parse_radius(const std::string& word, const std::string& where) {
  for (const Radius& radius : {Radius::norm_layer(), Radius::everywhere()})
    if (word == name_of(radius)) return radius;
  const std::optional<double> value = finite_number_in(word);
  if (!value || *value <= 0.0)
    throw InputError(fmt::format(
        "{} {}: expected a finite number above 0, or ln", where, word));
  return Radius::number(*value);
}

nlohmann::ordered_json to_json(const Radius& radius) {
  if (radius.is_number()) return radius.value();
  return name_of(radius);
}

}  // namespace lipscope::audit
