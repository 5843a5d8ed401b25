#include "lipscope/text/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/character_class.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

using nlohmann::json;

// the character that ends at byte `end` of a text that is UTF-8
Character character_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return character_at(text, at);
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool before =
      begin > 0 && is_word_character(character_before(text, begin).code);
  const bool after =
      end < text.size() && is_word_character(character_at(text, end).code);
  return !before && !after;
}

std::size_t white_space_before(std::string_view text, std::size_t begin) {
  while (begin > 0) {
    const Character c = character_before(text, begin);
    if (!is_white_space(c.code)) break;
    begin -= c.size;
  }
  return begin;
}

std::size_t white_space_after(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (!is_white_space(c.code)) break;
    end += c.size;
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) {
                     return a.content.size() > b.content.size();
                   });
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    by_first_[static_cast<unsigned char>(tokens_[i].content[0])].push_back(i);
}

const AddedToken* AddedTokens::longest_at(std::string_view text,
                                          std::size_t at) const {
  for (const std::size_t i : by_first_[static_cast<unsigned char>(text[at])])
    if (text.substr(at).starts_with(tokens_[i].content)) return &tokens_[i];
  return nullptr;
}

std::vector<TextSpan> AddedTokens::split(std::string_view text) const {
  std::vector<TextSpan> spans;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !empty();) {
    const AddedToken* token = longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) begin = white_space_before(text, begin);
    if (token->rstrip) end = white_space_after(text, end);
    begin = std::max(begin, done);  // what the token before has taken
    if (end <= begin) continue;
    if (done < begin) spans.push_back({std::nullopt, done, begin});
    spans.push_back({token->id, begin, end});
    done = end;
  }
  if (done < text.size()) spans.push_back({std::nullopt, done, text.size()});
  return spans;
}

std::vector<AddedToken> parse_added_tokens(std::string_view place,
                                           const json& list) {
  if (!list.is_null() && !list.is_array())
    throw InputError(fmt::format("{}: added_tokens is {}, expected a list",
                                 place, shown(list)));
  std::vector<AddedToken> tokens;
  for (const json& entry : list) {
    const auto refuse = [&](std::string_view expected) {
      throw InputError(fmt::format("{}: added_tokens holds {}, expected {}",
                                   place, shown(entry), expected));
    };
    for (const char* key : {"content", "special", "id"})
      if (!entry.is_object() || !entry.contains(key))
        refuse(fmt::format("an object with {}", key));
    if (!entry.at("content").is_string()) refuse("content to be a string");
    const auto flag = [&](const char* key, bool otherwise) {
      if (!entry.contains(key) || entry.at(key).is_null()) return otherwise;
      if (!entry.at(key).is_boolean())
        refuse(fmt::format("{} to be true or false", key));
      return entry.at(key).get<bool>();
    };
    AddedToken token;
    token.content = entry.at("content").get<std::string>();
    token.id = piece_id(place, token.content, entry.at("id"));
    token.single_word = flag("single_word", false);
    token.lstrip = flag("lstrip", false);
    token.rstrip = flag("rstrip", false);
    token.normalized = flag("normalized", !flag("special", false));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace lipscope
