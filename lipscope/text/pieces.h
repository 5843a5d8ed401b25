#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

struct PieceHash {
  using is_transparent = void;  // so that a string_view can be looked up
  std::size_t operator()(std::string_view piece) const {
    return std::hash<std::string_view>{}(piece);
  }
};

/// The ids of a vocabulary by its pieces.
using PieceIds =
    std::unordered_map<std::string, TokenId, PieceHash, std::equal_to<>>;

/// The pieces of a vocabulary by their ids, from {piece: id} in JSON and from
/// the list `added_tokens` of a tokenizer.json, which may be null and may name
/// pieces of the vocabulary again.
///
/// InputError, beginning with `place`, unless every piece has an id of its own,
/// and the ids are 0, 1, 2, ... without a gap. Also for added tokens that are
/// not special: they would have to be looked for in the text before all else.
std::vector<std::string> pieces_by_id(std::string_view place,
                                      const nlohmann::json& vocabulary,
                                      const nlohmann::json& added_tokens);

/// The ids by piece of pieces that stand in the order of their ids. InputError,
/// beginning with `place`, for a piece that stands there twice.
PieceIds ids_by_piece(std::string_view place,
                      const std::vector<std::string>& pieces);

/// The lines of a text, without their ends: "\n" or "\r\n". The last line need
/// not have one.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace lipscope
