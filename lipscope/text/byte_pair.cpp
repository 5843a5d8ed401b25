#include "lipscope/text/byte_pair.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

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
                    const std::vector<SpelledMerge>& merges,
                    std::string_view continuing_prefix) {
  PairMerges pairs;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    const TokenId left_id = id_of(place, ids, left, i);
    const TokenId right_id = id_of(place, ids, right, i);
    if (!right.starts_with(continuing_prefix))
      throw InputError(fmt::format(
          "{}: merge {} (counted from 1): {} does not begin with {}", place,
          i + 1, printable(right), printable(continuing_prefix)));
    const TokenId merged =
        id_of(place, ids, left + right.substr(continuing_prefix.size()), i);
    if (!pairs.add(left_id, right_id, merged, static_cast<double>(i)))
      throw InputError(fmt::format(
          "{}: merge {} (counted from 1), {} with {}, stands there twice",
          place, i + 1, printable(left), printable(right)));
  }
  return pairs;
}

}  // namespace

BytePair::BytePair(std::string_view place, PieceIds ids,
                   const std::vector<SpelledMerge>& merges,
                   BytePairOptions options)
    : ids_(std::move(ids)), options_(std::move(options)) {
  merges_ = numbered(place, ids_, merges, options_.continuing_prefix);
  if (options_.unknown)
    unknown_ = unknown_piece(place, ids_, *options_.unknown);
  for (int byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = byte_piece(ids_, static_cast<unsigned char>(byte));
}

std::vector<Token> BytePair::encode(std::string_view word) const {
  if (options_.ignore_merges)
    if (const auto found = ids_.find(word); found != ids_.end())
      return {{found->second, 0, word.size()}};

  std::vector<Token> tokens;
  // what is unknown is written when the next known character comes, behind
  // bytes that came between
  std::optional<Token> unknown;
  const auto write_unknown = [&] {
    if (unknown) tokens.push_back(*unknown);
    unknown.reset();
  };
  const bool plain =
      options_.continuing_prefix.empty() && options_.end_of_word_suffix.empty();
  std::string decorated;
  for_each_character(word, [&](char32_t, std::size_t begin, std::size_t end) {
    std::string_view spelled = word.substr(begin, end - begin);
    if (!plain) {
      decorated = begin > 0 ? options_.continuing_prefix : "";
      decorated += spelled;
      if (end == word.size()) decorated += options_.end_of_word_suffix;
      spelled = decorated;
    }
    if (const auto found = ids_.find(spelled); found != ids_.end()) {
      write_unknown();
      tokens.push_back({found->second, begin, end});
      return;
    }
    const auto id_of_byte = [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)];
    };
    if (options_.byte_fallback &&
        std::all_of(spelled.begin(), spelled.end(),
                    [&](char b) { return id_of_byte(b) >= 0; })) {
      std::size_t at = begin;
      for (const char byte : spelled) {
        const std::size_t next = std::min(at + 1, end);
        tokens.push_back({id_of_byte(byte), at, next});
        at = next;
      }
      return;
    }
    if (!unknown_)
      throw InputError(fmt::format(
          "the text holds {}, in {}, and the vocabulary has no piece for it",
          printable(spelled), printable(word)));
    if (unknown && options_.fuse_unknown) {
      unknown->end = end;
      return;
    }
    write_unknown();
    unknown = Token{*unknown_, begin, end};
  });
  write_unknown();
  return merges_.apply(std::move(tokens));
}

}  // namespace lipscope
