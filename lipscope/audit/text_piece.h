#pragma once

#include <string>
#include <vector>

#include "lipscope/record/record.h"

namespace lipscope {
class Tokenizer;
}

namespace lipscope::audit {

/// A text, or the piece of it that train makes of it.
struct TextPieceOptions {
  std::string text;  ///< FILE
  std::string piece = "all";
};

/// Its tokens as the model counts them.
struct TextPiece {
  std::vector<int> tokens;
  Index begin = 0;  ///< where the first stands among those of the whole text
};

/// InputError for a text that the tokenizer cannot read, and for fewer than two
/// tokens.
TextPiece piece_of(const TextPieceOptions& options, const Tokenizer& tokenizer);

/// The piece as a record names it.
RecordInput input_of(const TextPieceOptions& options, const TextPiece& piece);

}  // namespace lipscope::audit
