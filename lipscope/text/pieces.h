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

/// A vocabulary {piece: id} in JSON. InputError, beginning with `place`, unless
/// every id is one, and there is a piece.
PieceIds parse_piece_ids(std::string_view place,
                         const nlohmann::json& vocabulary);

/// The same with tokens that were added to it. InputError unless one that is a
/// piece of the vocabulary has its id, and the others have the ids after it, in
/// their order, as Hugging Face's tokenizers number them.
PieceIds with_added(std::string_view place, PieceIds ids,
                    const std::vector<AddedToken>& added);

/// The pieces by their ids. A number that no piece has, of which vocabularies
/// have some, is an empty piece. InputError, beginning with `place`, if two
/// have one id, or more than a thousand numbers are no piece's.
std::vector<std::string> pieces_by_id(std::string_view place,
                                      const PieceIds& ids);

/// The ids by piece of pieces that stand in the order of their ids. InputError,
/// beginning with `place`, for a piece that stands there twice.
PieceIds ids_by_piece(std::string_view place,
                      const std::vector<std::string>& pieces);

/// The id of the unknown piece. InputError, beginning with `place`, if it is
/// not there.
TokenId unknown_piece(std::string_view place, const PieceIds& ids,
                      std::string_view unknown);

/// The id of the piece <0x00> to <0xFF> that stands for a byte; −1 if there is
/// none.
TokenId byte_piece(const PieceIds& ids, unsigned char byte);

/// The lines of a text, without their ends: "\n" or "\r\n". The last line need
/// not have one. They borrow from the text, which must outlive them.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace lipscope
