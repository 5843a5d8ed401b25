#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lipscope {

/// InputError, with the byte, unless the text is UTF-8: no stray or missing
/// continuation, nothing longer than need be, no surrogate.
void check_utf8(std::string_view text);

/// A character, and how many bytes it takes.
struct Character {
  char32_t code = 0;
  std::size_t size = 0;
};

/// The character that begins at byte `at` of a text that is UTF-8.
Character character_at(std::string_view text, std::size_t at);

/// Calls visit(code, begin, end) for every character of a text that is UTF-8,
/// with its bytes [begin, end).
template <class Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    visit(c.code, at, at + c.size);
    at += c.size;
  }
}

/// The bytes of a character in UTF-8.
std::string utf8_of(char32_t code);

}  // namespace lipscope
