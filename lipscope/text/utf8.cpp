#include "lipscope/text/utf8.h"

#include <utf8proc.h>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// Bytes of the character at the beginning, or a negative number for none.
std::ptrdiff_t iterate(std::string_view text, char32_t& code) {
  utf8proc_int32_t c = 0;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &c);
  code = static_cast<char32_t>(c);
  return size;
}

}  // namespace

void check_utf8(std::string_view text) {
  char32_t ignored = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::ptrdiff_t size = iterate(text.substr(at), ignored);
    if (size <= 0)
      throw InputError(
          fmt::format("the text is not UTF-8: byte {} of {}, 0x{:02x}, begins "
                      "no character",
                      at, text.size(), static_cast<unsigned char>(text[at])));
    at += static_cast<std::size_t>(size);
  }
}

Character character_at(std::string_view text, std::size_t at) {
  Character character;
  const std::ptrdiff_t size = iterate(text.substr(at), character.code);
  require(size > 0, "character_at: no character begins at byte {}", at);
  character.size = static_cast<std::size_t>(size);
  return character;
}

std::string utf8_of(char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

}  // namespace lipscope
