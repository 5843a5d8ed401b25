#pragma once

#include "lipscope/text/json_section.h"
#include "lipscope/text/pattern.h"

namespace lipscope {

/// The `pattern` of a step of a tokenizer.json: {"String": "..."} or {"Regex":
/// "..."}. InputError, beginning with the step's place, for anything else.
Pattern parse_pattern(const JsonSection& step);

}  // namespace lipscope
