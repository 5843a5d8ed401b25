#include "lipscope/text/words.h"

#include <algorithm>

namespace lipscope {
namespace {

// the first byte from `at` on that begins a character, or the end
std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    ++at;
  return at;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text,
                                  std::span<const Token> tokens) {
  std::vector<std::string> words;
  std::size_t done = 0;
  for (const Token& token : tokens) {
    const bool last = words.size() + 1 == tokens.size();
    const std::size_t end =
        last ? text.size() : std::max(done, next_character(text, token.end));
    words.emplace_back(text.substr(done, end - done));
    done = end;
  }
  return words;
}

}  // namespace lipscope
