#include "lipscope/text/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/utf8.h"

namespace lipscope {

Vocabulary::Vocabulary(std::vector<char32_t> characters)
    : characters_(std::move(characters)) {
  for (std::size_t i = 1; i < characters_.size(); ++i)
    require(characters_[i - 1] < characters_[i],
            "vocabulary: character {} is not in order", i);
  for (const char32_t code : characters_) pieces_.push_back(utf8_of(code));
}

Vocabulary Vocabulary::of(std::string_view text) {
  std::set<char32_t> found;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    found.insert(c.code);
    at += c.size;
  }
  return Vocabulary(std::vector<char32_t>(found.begin(), found.end()));
}

std::vector<Token> Vocabulary::encode(std::string_view text) const {
  check_utf8(text);
  std::vector<Token> tokens;
  tokens.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const auto found =
        std::lower_bound(characters_.begin(), characters_.end(), c.code);
    if (found == characters_.end() || *found != c.code)
      throw InputError(
          fmt::format("byte {}: the model does not know the character U+{:04X}",
                      at, static_cast<unsigned>(c.code)));
    tokens.push_back({.id = static_cast<TokenId>(found - characters_.begin()),
                      .begin = at,
                      .end = at + c.size});
    at += c.size;
  }
  return tokens;
}

std::vector<TokenId> Vocabulary::encode(std::string_view text,
                                        const std::string& where) const {
  std::vector<TokenId> numbers;
  try {
    for (const Token& token : encode(text)) numbers.push_back(token.id);
  } catch (const InputError& wrong) {
    throw InputError(fmt::format("{}: {}", where, wrong.what()));
  }
  return numbers;
}

std::string Vocabulary::decode(std::span<const TokenId> numbers) const {
  std::string text;
  for (const TokenId c : numbers) text += pieces_.at(c);
  return text;
}

Vocabulary parse_vocabulary(std::string_view place, std::string_view config) {
  const nlohmann::json json = parse_json(place, config);
  const auto list = json.is_object() ? json.find("characters") : json.end();
  if (list == json.end() || !list->is_array())
    throw InputError(
        fmt::format("{}: no characters, a list of code points", place));
  std::vector<char32_t> characters;
  for (const nlohmann::json& code : *list) {
    constexpr std::uint64_t last = 0x10FFFF;
    const bool known = code.is_number_unsigned() &&
                       code.get<std::uint64_t>() <= last &&
                       (code.get<std::uint64_t>() < 0xD800 ||
                        code.get<std::uint64_t>() > 0xDFFF);
    if (!known)
      throw InputError(
          fmt::format("{}: characters: {} is not the code of a character",
                      place, shown(code)));
    characters.push_back(code.get<std::uint32_t>());
  }
  try {
    return Vocabulary(std::move(characters));
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("{}: {}", place, wrong.what()));
  }
}

}  // namespace lipscope
