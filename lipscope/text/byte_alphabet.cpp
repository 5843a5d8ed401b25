#include "lipscope/text/byte_alphabet.h"

#include <map>

#include "lipscope/text/utf8.h"

namespace lipscope {

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = [] {
    std::array<char32_t, 256> all;
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') ||
                           (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      all[byte] = visible ? byte : next++;
    }
    return all;
  }();
  return alphabet;
}

SourcedText in_byte_alphabet(const SourcedText& text) {
  SourcedText spelled;
  for (std::size_t i = 0; i < text.text().size(); ++i)
    spelled.append(byte_alphabet()[static_cast<unsigned char>(text.text()[i])],
                   text.source(i, i + 1));
  return spelled;
}

std::optional<std::string> bytes_spelled(std::string_view piece) {
  static const std::map<char32_t, char> bytes = [] {
    std::map<char32_t, char> all;
    for (int byte = 0; byte < 256; ++byte)
      all.emplace(byte_alphabet()[byte], static_cast<char>(byte));
    return all;
  }();
  std::string spelled;
  for (std::size_t at = 0; at < piece.size();) {
    const Character character = character_at(piece, at);
    const auto found = bytes.find(character.code);
    if (found == bytes.end()) return std::nullopt;
    spelled += found->second;
    at += character.size;
  }
  return spelled;
}

}  // namespace lipscope
