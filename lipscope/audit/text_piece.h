#pragma once

#include <string>
#include <vector>

#include "lipscope/record/record.h"
#include "lipscope/train/corpus.h"

namespace lipscope::audit {

/// A text for a model of characters, or the piece that train makes of it.
struct TextPieceOptions {
  std::string text;  ///< FILE
  std::string piece = "all";
};

/// Its characters as the model counts them.
struct TextPiece {
  std::vector<int> characters;
  Index begin = 0;  ///< where the first stands in the whole text
};

/// InputError for a character that the model does not know, and for fewer than
/// two.
TextPiece piece_of(const TextPieceOptions& options,
                   const Vocabulary& vocabulary);

/// The piece as a record names it.
RecordInput input_of(const TextPieceOptions& options, const TextPiece& piece);

}  // namespace lipscope::audit
