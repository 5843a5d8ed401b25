#include "lipscope/text/character_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "lipscope/text/unicode_versions.h"

namespace lipscope {
namespace {

bool is_in(char32_t c, std::span<const CharacterRange> ranges) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](char32_t code, const CharacterRange& r) { return code < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

bool is_of(char32_t c, CharacterClass which) {
  return is_in(c, characters_of(which));
}

}  // namespace

bool is_white_space(char32_t c) {
  const utf8proc_category_t kind =
      utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (c >= 0x09 && c <= 0x0d) || c == 0x85 ||
         (kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_ZP);
}

bool is_word_character(char32_t c) { return is_of(c, CharacterClass::word); }

bool is_numeric(char32_t c) { return is_of(c, CharacterClass::numeric); }

bool is_punctuation(char32_t c) {
  return is_of(c, CharacterClass::bert_punctuation);
}

bool is_bert_control(char32_t c) {
  return is_of(c, CharacterClass::bert_control);
}

bool is_bert_accent(char32_t c) {
  return is_of(c, CharacterClass::bert_accent);
}

bool is_combining_mark(char32_t c) {
  return is_of(c, CharacterClass::combining_mark);
}

bool changes_in_normal_forms(char32_t c) {
  return is_of(c, CharacterClass::normalized);
}

bool is_ideograph(char32_t c) {
  // from U+2B920 on, as Hugging Face's tokenizers have it; the block begins at
  // U+2B820
  constexpr CharacterRange blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                       {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                                       {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                       {0x2f800, 0x2fa1f}};
  return is_in(c, blocks);
}

}  // namespace lipscope
