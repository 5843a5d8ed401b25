#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// Each token as it stands in the text, with what no token stands for between
/// it and the one before (BERT's blanks): end to end, they are the text. Bytes
/// that are no whole characters, as a token of GPT-2 may be, are written
/// <E2><80>, so that every word is UTF-8.
std::vector<std::string> words_of(std::string_view text,
                                  std::span<const Token> tokens);

}  // namespace lipscope
