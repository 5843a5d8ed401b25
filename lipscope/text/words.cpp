#include "lipscope/text/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

bool is_utf8(std::string_view bytes) {
  try {
    check_utf8(bytes);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> words_of(std::string_view text,
                                  std::span<const Token> tokens) {
  std::vector<std::string> words;
  std::size_t end = tokens.empty() ? 0 : tokens.front().begin;
  for (const Token& token : tokens) {
    // where one character was taken apart, two tokens stand at it
    const std::size_t begin = std::min(end, token.begin);
    const std::string_view bytes = text.substr(begin, token.end - begin);
    std::string word;
    if (is_utf8(bytes))
      word = bytes;
    else
      for (const unsigned char byte : bytes)
        word += fmt::format("<{:02X}>", byte);
    words.push_back(std::move(word));
    end = token.end;
  }
  return words;
}

}  // namespace lipscope
