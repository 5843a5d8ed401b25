#include "lipscope/text/pieces.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {

using nlohmann::json;

TokenId piece_id(std::string_view place, std::string_view piece,
                 const json& id) {
  // integers beyond 64 bits come out of the parser as doubles
  if (!id.is_number_unsigned() ||
      id.get<std::uint64_t>() > std::numeric_limits<TokenId>::max())
    throw InputError(fmt::format(
        "{}: piece {}: its id is {}, expected an integer from 0 to {}", place,
        printable(piece), shown(id), std::numeric_limits<TokenId>::max()));
  return id.get<TokenId>();
}

PieceIds parse_piece_ids(std::string_view place, const json& vocabulary) {
  if (!vocabulary.is_object())
    throw InputError(
        fmt::format("{}: the vocabulary is {}, expected ids by "
                    "piece",
                    place, shown(vocabulary)));
  PieceIds ids;
  ids.reserve(vocabulary.size());
  for (const auto& [piece, id] : vocabulary.items())
    ids.emplace(piece, piece_id(place, piece, id));
  if (ids.empty())
    throw InputError(fmt::format("{}: the vocabulary is empty", place));
  return ids;
}

PieceIds with_added(std::string_view place, PieceIds ids,
                    const std::vector<AddedToken>& added) {
  const std::size_t size = ids.size();
  std::int64_t next = static_cast<std::int64_t>(size);
  for (const AddedToken& token : added) {
    const auto [known, is_new] = ids.emplace(token.content, token.id);
    if (is_new && token.id != next)
      throw InputError(fmt::format(
          "{}: the added token {} has id {}, expected {}: the vocabulary has "
          "{} pieces, and added tokens follow one by one",
          place, printable(token.content), token.id, next, size));
    if (known->second != token.id)
      throw InputError(fmt::format(
          "{}: piece {} has id {} in the vocabulary and {} among "
          "the added tokens",
          place, printable(token.content), known->second, token.id));
    next = std::max(next, std::int64_t{token.id} + 1);
  }
  return ids;
}

std::vector<std::string> pieces_by_id(std::string_view place,
                                      const PieceIds& ids) {
  constexpr std::size_t most_left_out = 1000;
  TokenId largest = -1;
  for (const auto& [piece, id] : ids) largest = std::max(largest, id);
  const std::size_t size = static_cast<std::size_t>(largest) + 1;
  if (size > ids.size() + most_left_out)
    throw InputError(fmt::format("{}: {} pieces have ids up to {}", place,
                                 ids.size(), largest));
  std::vector<std::string> pieces(size);
  std::vector<bool> taken(size, false);
  for (const auto& [piece, id] : ids) {
    if (taken[id])
      throw InputError(fmt::format("{}: pieces {} and {} both have id {}",
                                   place, printable(pieces[id]),
                                   printable(piece), id));
    taken[id] = true;
    pieces[id] = piece;
  }
  return pieces;
}

PieceIds ids_by_piece(std::string_view place,
                      const std::vector<std::string>& pieces) {
  PieceIds ids;
  for (const std::string& piece : pieces) {
    const TokenId id = static_cast<TokenId>(ids.size());
    const auto [known, is_new] = ids.emplace(piece, id);
    if (!is_new)
      throw InputError(
          fmt::format("{}: piece {} stands there twice, with ids "
                      "{} and {}",
                      place, printable(piece), known->second, id));
  }
  return ids;
}

TokenId unknown_piece(std::string_view place, const PieceIds& ids,
                      std::string_view unknown) {
  const auto found = ids.find(unknown);
  if (found == ids.end())
    throw InputError(
        fmt::format("{}: the unknown token {} is not in the vocabulary", place,
                    printable(unknown)));
  return found->second;
}

TokenId byte_piece(const PieceIds& ids, unsigned char byte) {
  const auto found = ids.find(fmt::format("<0x{:02X}>", byte));
  return found == ids.end() ? -1 : found->second;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
  }
  return lines;
}

}  // namespace lipscope
