#include "lipscope/text/byte_pair.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/gpt2_words.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

// The character that spells each byte.
std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> alphabet;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') ||
                         (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet[byte] = visible ? byte : next++;
  }
  return alphabet;
}

// The bytes that a piece spells; nothing if it is not written in the alphabet,
// as the special pieces of some vocabularies are not.
std::optional<std::string> bytes_of(const std::string& spelled) {
  static const std::map<char32_t, char> bytes = [] {
    std::map<char32_t, char> all;
    const std::array<char32_t, 256> alphabet = byte_alphabet();
    for (int byte = 0; byte < 256; ++byte)
      all.emplace(alphabet[byte], static_cast<char>(byte));
    return all;
  }();
  std::string piece;
  for (std::size_t at = 0; at < spelled.size();) {
    const Character character = character_at(spelled, at);
    const auto found = bytes.find(character.code);
    if (found == bytes.end()) return std::nullopt;
    piece += found->second;
    at += character.size;
  }
  return piece;
}

TokenId id_of(std::string_view place, const PieceIds& ids,
              std::string_view piece, std::size_t merge) {
  const auto found = ids.find(piece);
  if (found == ids.end())
    throw InputError(
        fmt::format("{}: merge {} (counted from 1) needs the piece {}, which "
                    "is not in the vocabulary",
                    place, merge + 1, printable(piece)));
  return found->second;
}

PairMerges numbered(std::string_view place, const PieceIds& ids,
                    const std::vector<SpelledMerge>& merges) {
  PairMerges pairs;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    const TokenId left_id = id_of(place, ids, left, i);
    const TokenId right_id = id_of(place, ids, right, i);
    const TokenId merged = id_of(place, ids, left + right, i);
    if (!pairs.add(left_id, right_id, merged, static_cast<double>(i)))
      throw InputError(fmt::format(
          "{}: merge {} (counted from 1), {} with {}, stands there twice",
          place, i + 1, printable(left), printable(right)));
  }
  return pairs;
}

}  // namespace

BytePairTokenizer::BytePairTokenizer(std::string_view place,
                                     const std::vector<std::string>& spelled,
                                     const std::vector<SpelledMerge>& merges,
                                     bool add_prefix_space)
    : add_prefix_space_(add_prefix_space) {
  const PieceIds ids = ids_by_piece(place, spelled);
  merges_ = numbered(place, ids, merges);
  for (const std::string& piece : spelled)
    pieces_.push_back(bytes_of(piece).value_or(piece));

  const std::array<char32_t, 256> alphabet = byte_alphabet();
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(utf8_of(alphabet[byte]));
    byte_ids_[byte] = found == ids.end() ? -1 : found->second;
  }
}

std::vector<Token> BytePairTokenizer::encode_word(std::string_view word) const {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (byte_ids_[byte] < 0)
      throw InputError(fmt::format(
          "the text holds the byte 0x{:02x}, in {}, and the vocabulary has no "
          "piece for it",
          byte, printable(word)));
    tokens.push_back({byte_ids_[byte], i, i + 1});
  }
  return merges_.apply(std::move(tokens));
}

std::vector<Token> BytePairTokenizer::encode(std::string_view text) const {
  check_utf8(text);
  std::string prefixed;
  if (add_prefix_space_ && !text.empty() && text.front() != ' ')
    prefixed = fmt::format(" {}", text);
  const std::size_t added = prefixed.empty() ? 0 : 1;
  if (added > 0) text = prefixed;

  // words come again and again; their tokens are found once
  std::unordered_map<std::string_view, std::vector<Token>> known;
  std::vector<Token> tokens;
  std::size_t begin = 0;
  for (const std::string_view word : gpt2_words(text)) {
    const auto [entry, is_new] = known.try_emplace(word);
    if (is_new) entry->second = encode_word(word);
    for (const Token& token : entry->second) {
      const std::size_t from = begin + token.begin;
      tokens.push_back({token.id, from < added ? 0 : from - added,
                        begin + token.end - added});
    }
    begin += word.size();
  }
  return tokens;
}

std::string BytePairTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += pieces_[id];
  return text;
}

std::vector<SpelledMerge> parse_merges(std::string_view place,
                                       std::string_view text) {
  std::vector<SpelledMerge> merges;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (number == 1 && line.starts_with("#version")) continue;
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == line.npos || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != line.npos)
      throw InputError(
          fmt::format("{}: line {}: {} is not two pieces with a blank between",
                      place, number, printable(line)));
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

BytePairTokenizer parse_byte_pair(std::string_view vocabulary_place,
                                  std::string_view vocabulary,
                                  std::string_view merges_place,
                                  std::string_view merges) {
  return BytePairTokenizer(
      merges_place,
      pieces_by_id(vocabulary_place, parse_json(vocabulary_place, vocabulary)),
      parse_merges(merges_place, merges));
}

}  // namespace lipscope
