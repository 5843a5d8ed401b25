#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lipscope/text/added_tokens.h"
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

/// The id of a piece in JSON. InputError, beginning with `place`, unless it is
/// an integer that an id can be.
TokenId piece_id(std::string_view place, std::string_view piece,
                 const nlohmann::json& id);

/// The pieces of a vocabulary by their ids, from {piece: id} in JSON and from
/// added tokens, which may name pieces of the vocabulary again.
///
/// InputError, beginning with `place`, unless every piece has an id of its own,
/// and the ids are 0, 1, 2, ... without a gap.
std::vector<std::string> pieces_by_id(
    std::string_view place, const nlohmann::json& vocabulary,
    const std::vector<AddedToken>& added = {});

/// The ids by piece of pieces that stand in the order of their ids. InputError,
/// beginning with `place`, for a piece that stands there twice.
PieceIds ids_by_piece(std::string_view place,
                      const std::vector<std::string>& pieces);

/// The lines of a text, without their ends: "\n" or "\r\n". The last line need
/// not have one. They borrow from the text, which must outlive them.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace lipscope
