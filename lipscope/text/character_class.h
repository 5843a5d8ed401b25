#pragma once

/// What kind of character a code point is, by the Unicode version that utf8proc
/// knows.
namespace lipscope {

/// Unicode's White_Space: the separators, and some control characters.
bool is_white_space(char32_t c);

/// What a word is written with: letters, marks, decimal digits, letter-like
/// numbers, connectors as the underscore, and the two joiners.
bool is_word_character(char32_t c);

}  // namespace lipscope
