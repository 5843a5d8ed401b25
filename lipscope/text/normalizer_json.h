#pragma once

#include "lipscope/text/json_section.h"
#include "lipscope/text/normalizers.h"

namespace lipscope {

/// The normalizer of a tokenizer.json, or one of a Sequence. InputError,
/// beginning with its place, for a type or a value that is not known, by its
/// name.
Normalizer parse_normalizer(const JsonSection& step);

}  // namespace lipscope
