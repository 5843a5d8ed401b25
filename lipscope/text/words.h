#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// What of the text each token shows: put end to end they are the text, which
/// must be UTF-8, and each is UTF-8. A token shows what stands up to its end
/// and was not shown before: with its own characters those that no token stands
/// for (BERT's blanks) ahead of it, the last one those at the end as well.
/// Where several tokens share a character, as the jamo of a Hangul syllable or
/// the bytes of an emoji do, the first of them shows it and the others are
/// empty.
std::vector<std::string> words_of(std::string_view text,
                                  std::span<const Token> tokens);

}  // namespace lipscope
