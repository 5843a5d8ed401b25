#include "lipscope/text/word_piece.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

// The token that these characters make. Marks may have changed places, so that
// the first is not always the leftmost.
Token token_over(TokenId id, std::span<const BertCharacter> characters) {
  Token token{id, characters.front().begin, characters.front().end};
  for (const BertCharacter& c : characters) {
    token.begin = std::min(token.begin, c.begin);
    token.end = std::max(token.end, c.end);
  }
  return token;
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(std::string_view place,
                                       std::vector<std::string> pieces,
                                       WordPieceOptions options)
    : pieces_(std::move(pieces)), options_(std::move(options)) {
  beginning_ = ids_by_piece(place, pieces_);
  const std::string& prefix = options_.continuing_prefix;
  for (const auto& [piece, id] : beginning_) {
    longest_piece_ = std::max(longest_piece_, piece.size());
    if (piece.starts_with(prefix))
      continuing_.emplace(piece.substr(prefix.size()), id);
  }
  const auto found = beginning_.find(options_.unknown);
  if (found == beginning_.end())
    throw InputError(
        fmt::format("{}: the unknown token {} is not in the vocabulary", place,
                    printable(options_.unknown)));
  unknown_ = found->second;
}

std::vector<Token> WordPieceTokenizer::encode_word(const BertWord& word) const {
  const std::vector<Token> unknown = {token_over(unknown_, word)};
  if (word.size() > options_.longest_word) return unknown;

  // starts[i]: the byte at which character i begins
  std::string bytes;
  std::vector<std::size_t> starts;
  for (const BertCharacter& c : word) {
    starts.push_back(bytes.size());
    bytes += utf8_of(c.code);
  }
  starts.push_back(bytes.size());

  std::vector<Token> tokens;
  std::size_t from = 0, reach = 0;
  while (from < word.size()) {
    const PieceIds& pieces = from == 0 ? beginning_ : continuing_;
    // no piece that begins here ends beyond `reach`
    while (reach < word.size() &&
           starts[reach + 1] - starts[from] <= longest_piece_)
      ++reach;
    std::size_t to = reach;
    for (; to > from; --to) {
      const auto found = pieces.find(std::string_view(bytes).substr(
          starts[from], starts[to] - starts[from]));
      if (found == pieces.end()) continue;
      tokens.push_back(
          token_over(found->second, std::span(word).subspan(from, to - from)));
      break;
    }
    if (to == from) return unknown;
    from = to;
  }
  return tokens;
}

std::vector<Token> WordPieceTokenizer::encode(std::string_view text,
                                              const AddedTokens& added) const {
  check_utf8(text);
  const BertWord all = bert_normalized(text, options_.normalization);
  std::vector<Token> tokens;
  const auto add_words = [&](std::span<const BertCharacter> part) {
    for (const BertWord& word : words_in(part))
      for (const Token& token : encode_word(word)) tokens.push_back(token);
  };
  if (added.empty()) {
    add_words(all);
    return tokens;
  }
  // the normalised text in bytes, and which character each byte begins
  std::string bytes;
  std::vector<std::size_t> character_of;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes += utf8_of(all[i].code);
    character_of.resize(bytes.size(), i);
  }
  character_of.push_back(all.size());
  for (const TextSpan& span : added.split(bytes)) {
    const std::size_t first = character_of[span.begin],
                      last = character_of[span.end];
    const auto part = std::span(all).subspan(first, last - first);
    if (span.id)
      tokens.push_back(token_over(*span.id, part));
    else
      add_words(part);
  }
  return tokens;
}

std::string WordPieceTokenizer::normalized(std::string_view text) const {
  check_utf8(text);
  std::string bytes;
  for (const BertCharacter& c : bert_normalized(text, options_.normalization))
    bytes += utf8_of(c.code);
  return bytes;
}

std::string WordPieceTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  const std::string& prefix = options_.continuing_prefix;
  for (const TokenId id : ids) {
    const std::string_view piece = pieces_[id];
    const bool continues = !text.empty() && piece.starts_with(prefix);
    if (!text.empty() && !continues) text += ' ';
    text += continues ? piece.substr(prefix.size()) : piece;
  }
  return text;
}

WordPieceTokenizer parse_word_piece(std::string_view place,
                                    std::string_view text,
                                    const WordPieceOptions& options) {
  std::vector<std::string> pieces;
  for (const std::string_view line : lines_of(text)) {
    if (line.empty())
      throw InputError(fmt::format("{}: line {} is empty, expected a piece",
                                   place, pieces.size() + 1));
    pieces.emplace_back(line);
  }
  return WordPieceTokenizer(place, std::move(pieces), options);
}

}  // namespace lipscope
