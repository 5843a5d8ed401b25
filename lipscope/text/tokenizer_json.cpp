#include "lipscope/text/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "lipscope/io/json_text.h"
#include "lipscope/text/json_section.h"
#include "lipscope/text/model_json.h"
#include "lipscope/text/normalizer_json.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/pre_tokenizer_json.h"

namespace lipscope {
namespace {

using nlohmann::json;

// The steps under a key, those of Sequences one by one.
void add_steps(const JsonSection& step, std::vector<JsonSection>& all) {
  if (step.text("type") != "Sequence") {
    all.push_back(step);
    return;
  }
  for (const char* list : {"normalizers", "pretokenizers"})
    if (step.has(list))
      for (const JsonSection& one : step.sections(list)) add_steps(one, all);
}

// How the steps make a text look like the pieces of the vocabulary.
Spelling spelling_of(const JsonSection& file, const JsonSection& model) {
  std::vector<JsonSection> steps;
  for (const char* key : {"normalizer", "pre_tokenizer"})
    if (file.has(key)) add_steps(file.section(key), steps);

  Spelling spelling;
  if (model_type(model) == "WordPiece")
    return {.kind = Spelling::Kind::continuing,
            .mark = model.text("continuing_subword_prefix", "##")};
  for (const JsonSection& step : steps) {
    const std::string type = step.text("type");
    if (type == "ByteLevel") return {.kind = Spelling::Kind::bytes};
    if (type == "Prepend") spelling.marked_beginning = true;
    if (type == "Metaspace") {
      const MetaspaceOptions options = parse_metaspace(step);
      spelling.kind = Spelling::Kind::marks;
      spelling.mark = options.mark;
      spelling.marked_beginning = options.scheme != PrependScheme::never;
    }
    const bool spaces_replaced = type == "Replace" &&
                                 step.at("pattern") == json{{"String", " "}} &&
                                 !step.text("content").empty();
    if (spaces_replaced) {
      spelling.kind = Spelling::Kind::marks;
      spelling.mark = step.text("content");
    }
  }
  return spelling;
}

}  // namespace

Tokenizer parse_tokenizer_json(std::string_view place, std::string_view text) {
  const json parsed = parse_json(place, text);
  const JsonSection file(std::string(place), parsed);
  const JsonSection model = file.section("model");

  Normalizer normalizer;
  if (file.has("normalizer"))
    normalizer = parse_normalizer(file.section("normalizer"));
  PreTokenizer pre_tokenizer;
  if (file.has("pre_tokenizer"))
    pre_tokenizer = parse_pre_tokenizer(file.section("pre_tokenizer"));
  ParsedModel read = parse_model(model);
  const std::vector<AddedToken> added =
      parse_added_tokens(place, file.at("added_tokens"));
  const PieceIds ids = with_added(place, std::move(read.ids), added);
  return Tokenizer(Pipeline(std::move(normalizer), std::move(pre_tokenizer),
                            std::move(read.model), pieces_by_id(place, ids),
                            spelling_of(file, model)),
                   added);
}

}  // namespace lipscope
