#include "lipscope/text/model_json.h"

#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {
namespace {

using nlohmann::json;

// "left right", or ["left", "right"]
SpelledMerge parse_merge(const JsonSection& model, const json& merge,
                         std::size_t number) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  if (merge.is_string()) {
    const std::string both = merge.get<std::string>();
    const std::size_t blank = both.find(' ');
    if (blank != both.npos && both.find(' ', blank + 1) == both.npos)
      return {both.substr(0, blank), both.substr(blank + 1)};
  }
  throw InputError(
      fmt::format("{}: merge {} (counted from 1) is {}, expected two pieces",
                  model.place(), number, shown(merge)));
}

ParsedModel parse_byte_pair(const JsonSection& model) {
  if (model.has("dropout") && model.at("dropout") != json(0.0))
    model.not_implemented("dropout");
  BytePairOptions options;
  if (model.has("unk_token")) options.unknown = model.text("unk_token");
  options.fuse_unknown = model.flag("fuse_unk", false);
  options.byte_fallback = model.flag("byte_fallback", false);
  options.ignore_merges = model.flag("ignore_merges", false);
  options.continuing_prefix = model.text("continuing_subword_prefix", "");
  options.end_of_word_suffix = model.text("end_of_word_suffix", "");
  if (!model.at("merges").is_array()) model.refuse("merges", "a list");
  std::vector<SpelledMerge> merges;
  for (const json& merge : model.at("merges"))
    merges.push_back(parse_merge(model, merge, merges.size() + 1));
  const PieceIds ids = parse_piece_ids(model.place(), model.at("vocab"));
  return {BytePair(model.place(), ids, merges, options), ids};
}

ParsedModel parse_word_piece(const JsonSection& model) {
  WordPieceOptions options;
  options.unknown = model.text("unk_token", options.unknown);
  options.continuing_prefix =
      model.text("continuing_subword_prefix", options.continuing_prefix);
  if (model.has("max_input_chars_per_word")) {
    if (!model.at("max_input_chars_per_word").is_number_unsigned())
      model.refuse("max_input_chars_per_word", "an integer, 0 or more");
    options.longest_word =
        model.at("max_input_chars_per_word").get<std::size_t>();
  }
  const PieceIds ids = parse_piece_ids(model.place(), model.at("vocab"));
  return {WordPiece(model.place(), ids, options), ids};
}

ParsedModel parse_unigram(const JsonSection& model) {
  UnigramOptions options;
  options.byte_fallback = model.flag("byte_fallback", false);
  if (model.has("unk_id"))
    options.unknown = piece_id(model.place(), "unk_id", model.at("unk_id"));
  if (!model.at("vocab").is_array() || model.at("vocab").empty())
    model.refuse("vocab", "a list of pieces with their scores");
  std::vector<ScoredPiece> pieces;
  PieceIds ids;
  for (const json& entry : model.at("vocab")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number())
      throw InputError(
          fmt::format("{}: piece {} is {}, expected a string and its score",
                      model.place(), pieces.size(), shown(entry)));
    ids.emplace(entry[0].get<std::string>(),
                static_cast<TokenId>(pieces.size()));
    pieces.push_back({entry[0].get<std::string>(), entry[1].get<double>()});
  }
  return {Unigram(model.place(), pieces, options), ids};
}

}  // namespace

std::string model_type(const JsonSection& model) {
  if (model.has("type")) return model.text("type");
  if (model.has("merges")) return "BPE";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  if (model.has("unk_id")) return "Unigram";
  model.refuse("type", "BPE, WordPiece or Unigram");
}

ParsedModel parse_model(const JsonSection& model) {
  const std::string type = model_type(model);
  if (type == "BPE") return parse_byte_pair(model);
  if (type == "WordPiece") return parse_word_piece(model);
  if (type == "Unigram") return parse_unigram(model);
  model.refuse("type", "BPE, WordPiece or Unigram");
}

}  // namespace lipscope
