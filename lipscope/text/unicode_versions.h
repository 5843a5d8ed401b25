#pragma once

#include <span>

/// Characters as Hugging Face's tokenizers know them, whose parts follow
/// Unicode 8 to 17. The utf8proc and the PCRE2 of a machine follow versions of
/// their own, from 14 on.
namespace lipscope {

/// Classes of characters that normalizers and pre-tokenizers ask for.
enum class CharacterClass {
  bert_punctuation,
  bert_control,
  bert_accent,
  combining_mark,
  normalized,  ///< taken apart or put in order by a normal form
  numeric,
  word
};

struct CharacterRange {
  char32_t first = 0, last = 0;
};

/// The characters of a class, in order.
std::span<const CharacterRange> characters_of(CharacterClass which);

/// Characters that Unicode 14 does not know, with their category.
struct NewCharacters {
  char32_t first = 0, last = 0;
  const char* category = "";
};
std::span<const NewCharacters> new_characters();

/// Characters whose lower case Unicode 14 does not know: `offset` further on.
struct NewLowerCase {
  char32_t first = 0, last = 0;
  int offset = 0;
};
std::span<const NewLowerCase> new_lower_case();

}  // namespace lipscope
