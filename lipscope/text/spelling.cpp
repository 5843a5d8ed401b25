#include "lipscope/text/spelling.h"

#include <charconv>

#include "lipscope/text/byte_alphabet.h"

namespace lipscope {
namespace {

// Blanks for marks, and the byte for <0x00> to <0xFF>
std::string without_marks_in(const std::string& piece, std::string_view mark) {
  if (piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>')) {
    unsigned char byte = 0;
    const char* begin = piece.data() + 3;
    const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error == std::errc() && end == begin + 2)
      return std::string(1, static_cast<char>(byte));
  }
  std::string read;
  for (std::size_t at = 0; at < piece.size();) {
    const bool here = std::string_view(piece).substr(at).starts_with(mark);
    read += here ? ' ' : piece[at];
    at += here ? mark.size() : 1;
  }
  return read;
}

}  // namespace

std::vector<std::string> Spelling::read(
    const std::vector<std::string>& spelled) const {
  std::vector<std::string> pieces = spelled;
  for (std::string& piece : pieces) {
    if (kind == Kind::bytes) piece = bytes_spelled(piece).value_or(piece);
    if (kind == Kind::marks) piece = without_marks_in(piece, mark);
  }
  return pieces;
}

std::string Spelling::joined(const std::vector<std::string>& pieces,
                             std::span<const TokenId> ids) const {
  std::string text;
  bool first = true;
  for (const TokenId id : ids) {
    std::string_view piece = pieces[id];
    if (kind == Kind::continuing) {
      const bool continues = !first && piece.starts_with(mark);
      if (continues) piece.remove_prefix(mark.size());
      if (!first && !continues) text += ' ';
    }
    if (marked_beginning && first && piece.starts_with(' '))
      piece.remove_prefix(1);
    text += piece;
    first = false;
  }
  return text;
}

}  // namespace lipscope
