#pragma once

#include <cstdint>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A text that a small grammar writes, for machines where no other is: English
/// words in sentences whose verbs agree with their subjects, across relative
/// clauses too, so that a model of characters has something to learn from
/// beyond the last few. The same bytes for the same seed, and the beginning of
/// a longer text is the shorter one.
std::string generated_text(Index characters, std::uint64_t seed = 0);

}  // namespace lipscope
