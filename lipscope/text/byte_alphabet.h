#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/text/sourced_text.h"

namespace lipscope {

/// The character that byte-level vocabularies write for each byte [Radford19]:
/// itself where it is a visible one in Latin-1, else U+0100, U+0101, ... in
/// turn (a blank is U+0120).
const std::array<char32_t, 256>& byte_alphabet();

/// Every byte of a text as its character.
SourcedText in_byte_alphabet(const SourcedText& text);

/// The bytes that a piece spells; nothing if it is not written in the alphabet,
/// as the special pieces of some vocabularies are not.
std::optional<std::string> bytes_spelled(std::string_view piece);

}  // namespace lipscope
