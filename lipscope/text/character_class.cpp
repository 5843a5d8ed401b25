#include "lipscope/text/character_class.h"

#include <utf8proc.h>

namespace lipscope {

bool is_white_space(char32_t c) {
  const utf8proc_category_t kind =
      utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (c >= 0x09 && c <= 0x0d) || c == 0x85 ||
         kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_word_character(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200c || c == 0x200d;
  }
}

}  // namespace lipscope
