#include "lipscope/text/bert_files.h"

#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/json_section.h"
#include "lipscope/text/pieces.h"

namespace lipscope {

Pipeline bert_pipeline(std::string_view place,
                       const std::vector<std::string>& pieces,
                       const BertOptions& options) {
  return Pipeline(
      as_bert(options.normalization), bert_words(),
      WordPiece(place, ids_by_piece(place, pieces), options.word_piece), pieces,
      {.kind = Spelling::Kind::continuing,
       .mark = options.word_piece.continuing_prefix});
}

Pipeline parse_bert_vocabulary(std::string_view place, std::string_view text,
                               const BertOptions& options) {
  std::vector<std::string> pieces;
  for (const std::string_view line : lines_of(text)) {
    if (line.empty())
      throw InputError(fmt::format("{}: line {} is empty, expected a piece",
                                   place, pieces.size() + 1));
    pieces.emplace_back(line);
  }
  return bert_pipeline(place, pieces, options);
}

BertOptions parse_bert_config(std::string_view place, std::string_view text) {
  const nlohmann::json parsed = parse_json(place, text);
  const JsonSection file(std::string(place), parsed);
  BertOptions options;
  BertNormalization& how = options.normalization;
  how.lowercase = file.flag("do_lower_case", true);
  how.strip_accents = file.flag("strip_accents", how.lowercase);
  how.split_ideographs = file.flag("tokenize_chinese_chars", true);
  // under these names, or as objects with a content
  const char* keys[] = {"pad_token", "unk_token", "cls_token", "sep_token",
                        "mask_token"};
  for (std::size_t i = 0; i < options.special.size(); ++i) {
    const nlohmann::json& named = file.at(keys[i]);
    if (named.is_object())
      options.special[i] =
          file.section(keys[i]).text("content", options.special[i]);
    else
      options.special[i] = file.text(keys[i], options.special[i]);
  }
  options.word_piece.unknown = options.special[1];
  return options;
}

}  // namespace lipscope
