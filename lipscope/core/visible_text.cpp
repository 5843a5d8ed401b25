#include "lipscope/core/visible_text.h"

#include <fmt/format.h>

#include <cstddef>

namespace lipscope {
namespace {

// The character at the beginning of the text; size 0 where no character of
// UTF-8 begins there: a stray or missing continuation, more bytes than need be,
// a surrogate, or a number beyond the last character.
struct Decoded {
  char32_t code = 0;
  std::size_t size = 0;
};

Decoded first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t code = lead & (0x7f >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool longer_than_needed =
      (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (longer_than_needed || surrogate || code > 0x10ffff) return {};
  return {code, size};
}

bool turns_direction(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string visible(std::string_view text, bool one_line) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, size] = first_character(text.substr(at));
    if (size == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
      ++at;
      continue;
    }
    if (c == '\n' || c == '\t')
      shown += !one_line   ? std::string(1, static_cast<char>(c))
               : c == '\n' ? "\\n"
                           : "\\t";
    else if (c < 0x20 || c == 0x7f)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else if ((c >= 0x80 && c < 0xa0) || turns_direction(c))
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      shown += text.substr(at, size);
    at += size;
  }
  return shown;
}

}  // namespace

std::string visible_text(std::string_view text) { return visible(text, false); }

std::string visible_line(std::string_view text) { return visible(text, true); }

}  // namespace lipscope
