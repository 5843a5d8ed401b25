#include "lipscope/text/pieces.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {
namespace {

using nlohmann::json;

// The pieces of the vocabulary and the added ones, once each.
PieceIds all_pieces(std::string_view place, const json& vocabulary,
                    const std::vector<AddedToken>& added_tokens) {
  if (!vocabulary.is_object())
    throw InputError(
        fmt::format("{}: the vocabulary is {}, expected ids by "
                    "piece",
                    place, shown(vocabulary)));
  PieceIds ids;
  for (const auto& [piece, id] : vocabulary.items())
    ids.emplace(piece, piece_id(place, piece, id));
  for (const AddedToken& token : added_tokens) {
    const TokenId known = ids.emplace(token.content, token.id).first->second;
    if (known != token.id)
      throw InputError(
          fmt::format("{}: piece {} has id {} in the vocabulary and {} among "
                      "the added tokens",
                      place, printable(token.content), known, token.id));
  }
  return ids;
}

}  // namespace

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

std::vector<std::string> pieces_by_id(std::string_view place,
                                      const json& vocabulary,
                                      const std::vector<AddedToken>& added) {
  const PieceIds ids = all_pieces(place, vocabulary, added);
  if (ids.empty())
    throw InputError(fmt::format("{}: the vocabulary is empty", place));

  // as many places as pieces, whatever ids they claim
  std::vector<const std::string*> by_id(ids.size(), nullptr);
  TokenId largest = 0;
  for (const auto& [piece, id] : ids) {
    largest = std::max(largest, id);
    if (static_cast<std::size_t>(id) >= by_id.size()) continue;
    if (by_id[id] != nullptr)
      throw InputError(fmt::format("{}: pieces {} and {} both have id {}",
                                   place, printable(*by_id[id]),
                                   printable(piece), id));
    by_id[id] = &piece;
  }
  std::vector<std::string> pieces;
  for (const std::string* piece : by_id) {
    if (piece == nullptr)
      throw InputError(
          fmt::format("{}: no piece has id {}, though ids go up to {}", place,
                      pieces.size(), largest));
    pieces.push_back(*piece);
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
