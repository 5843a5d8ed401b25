#include "lipscope/text/character_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "lipscope/text/unicode_versions.h"

namespace lipscope {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool between(utf8proc_category_t kind, utf8proc_category_t first,
             utf8proc_category_t last) {
  return first <= kind && kind <= last;
}

bool is_in(char32_t c, std::span<const CharacterRange> ranges) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](char32_t code, const CharacterRange& r) { return code < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

// What utf8proc says, unless Hugging Face's tokenizers follow another version.
bool corrected(char32_t c, bool here, CharacterClass which) {
  return here != is_in(c, differing(which));
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x85 ||
         between(category(c), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_word_character(char32_t c) {
  const utf8proc_category_t kind = category(c);
  const bool here = between(kind, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) ||
                    kind == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d;
  return corrected(c, here, CharacterClass::word);
}

bool is_numeric(char32_t c) {
  return corrected(
      c, between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO),
      CharacterClass::numeric);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) ||
           (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return corrected(
      c, between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO),
      CharacterClass::bert_punctuation);
}

bool is_bert_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t kind = category(c);
  const bool here = c == 0xfffd || kind == UTF8PROC_CATEGORY_CC ||
                    kind == UTF8PROC_CATEGORY_CF ||
                    kind == UTF8PROC_CATEGORY_CO;
  return corrected(c, here, CharacterClass::bert_control);
}

bool is_bert_accent(char32_t c) {
  return corrected(c, category(c) == UTF8PROC_CATEGORY_MN,
                   CharacterClass::bert_accent);
}

bool is_combining_mark(char32_t c) {
  return corrected(
      c, between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME),
      CharacterClass::combining_mark);
}

bool is_left_as_it_is(char32_t c) {
  return corrected(c, false, CharacterClass::left_as_it_is);
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
