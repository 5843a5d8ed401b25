#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/pieces.h"
#include "lipscope/text/token.h"

namespace lipscope {

struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string continuing_prefix = "##";
  std::size_t longest_word = 100;  ///< in characters; a longer one is unknown
};

/// WordPiece, as BERT has it [Devlin19]: a word is taken apart from the left,
/// each time by the longest piece that fits; pieces that do not begin a word
/// are written with the prefix. A word that does not come out even is the
/// unknown token as a whole.
class WordPiece {
 public:
  /// InputError, beginning with `place`, if the unknown piece is not there.
  WordPiece(std::string_view place, PieceIds ids, WordPieceOptions options);

  /// The pieces of a word, with its bytes that they stand at.
  std::vector<Token> encode(std::string_view word) const;

 private:
  WordPieceOptions options_;
  PieceIds beginning_;             // pieces that may begin a word: all of them
  PieceIds continuing_;            // those with the prefix, without it
  std::size_t longest_piece_ = 0;  // in bytes
  TokenId unknown_ = 0;
};

}  // namespace lipscope
