#pragma once

#include <span>

/// Where the parts of Hugging Face's tokenizers, which follow Unicode 8 to 17,
/// know characters otherwise than utf8proc and PCRE2, which follow Unicode 14.
namespace lipscope {

/// Classes of characters that normalizers and pre-tokenizers ask for.
enum class CharacterClass {
  bert_punctuation,
  bert_control,
  bert_accent,
  combining_mark,
  left_as_it_is,
  numeric,
  word
};

struct CharacterRange {
  char32_t first = 0, last = 0;
};

/// The characters that are of this class there and not here, or here and not
/// there; in order. Here: character_class.cpp, by utf8proc's categories.
std::span<const CharacterRange> differing(CharacterClass which);

/// Characters that utf8proc and PCRE2 do not know, with their category.
struct NewCharacters {
  char32_t first = 0, last = 0;
  const char* category = "";
};
std::span<const NewCharacters> new_characters();

/// Characters whose lower case utf8proc does not know: `offset` further on.
struct NewLowerCase {
  char32_t first = 0, last = 0;
  int offset = 0;
};
std::span<const NewLowerCase> new_lower_case();

}  // namespace lipscope
