#pragma once

#include <string>
#include <vector>

#include "lipscope/audit/predictor.h"
#include "lipscope/audit/text_piece.h"

namespace lipscope::audit {

/// Which windows of a piece of text are predicted.
enum class EvalWindows {
  own,        ///< of the model's context, one after the other: all of the piece
  newhouse25  ///< 1,280 of 256 characters at the beginning of the last tenth
};

std::string name_of(EvalWindows windows);  ///< "own", "newhouse25"

struct EvalRequest {
  std::string folder;
  TextPieceOptions text;
  EvalWindows windows = EvalWindows::own;
  SavedWeights weights = SavedWeights::best;
  /// Beside the model, how well n-grams of 1 … this predict the same, counted
  /// in the nine tenths that train learns from; 0: none.
  Index ngrams = 0;
  int threads = 0;
};

struct Evaluated {
  TextPiece piece;
  std::string model_sha256;
  bool characters = false;  ///< its tokens are
  Index context = 0;        ///< of the model
  Index predicted = 0;      ///< tokens
  TextScore score;
  std::vector<TextScore> ngrams = {};  ///< of 1, 2, …
};

/// How well the model of a folder predicts a text. InputError for what does not
/// go together: windows and n-grams are those of characters and of the last
/// tenth.
Evaluated evaluate(const EvalRequest& request);

}  // namespace lipscope::audit
