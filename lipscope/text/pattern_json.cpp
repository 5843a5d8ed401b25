#include "lipscope/text/pattern_json.h"

namespace lipscope {

Pattern parse_pattern(const JsonSection& step) {
  const JsonSection pattern = step.section("pattern");
  if (pattern.has("String")) return Pattern::of_string(pattern.text("String"));
  if (pattern.has("Regex"))
    return Pattern::of_regex(pattern.place(), pattern.text("Regex"));
  step.refuse("pattern", "an object with String or Regex");
}

}  // namespace lipscope
