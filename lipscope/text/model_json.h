#pragma once

#include <string>

#include "lipscope/text/json_section.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/pipeline.h"

namespace lipscope {

/// The model of a tokenizer.json: BPE, WordPiece or Unigram, with the ids of
/// its vocabulary. InputError, beginning with its place, for another type, for
/// options that would change the ids and are not implemented (dropout), and for
/// what is malformed.
struct ParsedModel {
  Pipeline::Model model;
  PieceIds ids;
};
ParsedModel parse_model(const JsonSection& model);

/// "BPE", "WordPiece" or "Unigram". Older files do not name their model; its
/// options tell.
std::string model_type(const JsonSection& model);

}  // namespace lipscope
