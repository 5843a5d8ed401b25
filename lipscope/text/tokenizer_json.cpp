#include "lipscope/text/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/pieces.h"

namespace lipscope {
namespace {

using nlohmann::json;

// An object of the file, and what to call it in a message.
class Section {
 public:
  Section(std::string place, const json& value)
      : place_(std::move(place)), value_(value) {
    if (!value_.is_object())
      throw InputError(
          fmt::format("{}: is {}, expected an object", place_, shown(value_)));
  }

  const std::string& place() const { return place_; }

  // null where there is no such key
  const json& at(const char* key) const {
    static const json null;
    const auto found = value_.find(key);
    return found == value_.end() ? null : *found;
  }
  bool has(const char* key) const { return !at(key).is_null(); }

  Section section(const char* key) const {
    return Section(fmt::format("{}: {}", place_, key), at(key));
  }

  std::string type() const {
    if (!at("type").is_string()) refuse("type", "a string");
    return at("type").get<std::string>();
  }

  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }

  std::string text(const char* key, const std::string& otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_string()) refuse(key, "a string");
    return at(key).get<std::string>();
  }

  [[noreturn]] void refuse(const char* key, std::string_view expected) const {
    throw InputError(fmt::format("{}: {} is {}, expected {}", place_, key,
                                 shown(at(key)), expected));
  }

  // Refuses an option that would change the ids in a way not implemented.
  void expect_unset(const char* key) const {
    const json& value = at(key);
    if (value.is_null() || value == json(false) || value == json("")) return;
    throw InputError(fmt::format("{}: {} is {}, which is not implemented",
                                 place_, key, shown(value)));
  }

 private:
  std::string place_;
  const json& value_;
};

// The type of the file's normalizer or pre-tokenizer must be this one.
Section expected_section(const Section& file, const char* key,
                         std::string_view type) {
  if (!file.has(key))
    throw InputError(
        fmt::format("{}: has no {}, expected {}", file.place(), key, type));
  Section section = file.section(key);
  if (section.type() != type)
    throw InputError(fmt::format("{}: {} is of type {}, expected {}",
                                 file.place(), key, printable(section.type()),
                                 type));
  return section;
}

// "left right", or ["left", "right"]
SpelledMerge parse_merge(const Section& model, const json& merge,
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

BytePairTokenizer byte_pair(const Section& file, const Section& model,
                            const std::vector<AddedToken>& added) {
  if (file.has("normalizer"))
    throw InputError(fmt::format(
        "{}: normalizer of type {}, which is not implemented for BPE",
        file.place(), printable(file.section("normalizer").type())));
  const Section splitter = expected_section(file, "pre_tokenizer", "ByteLevel");
  if (!splitter.flag("use_regex", true))
    splitter.refuse("use_regex", "true: words split by GPT-2's pattern");
  for (const char* option :
       {"dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "byte_fallback", "ignore_merges"})
    model.expect_unset(option);

  if (!model.at("merges").is_array()) model.refuse("merges", "a list");
  std::vector<SpelledMerge> merges;
  for (const json& merge : model.at("merges"))
    merges.push_back(parse_merge(model, merge, merges.size() + 1));
  return BytePairTokenizer(
      model.place(), pieces_by_id(model.place(), model.at("vocab"), added),
      merges, splitter.flag("add_prefix_space", true));
}

WordPieceTokenizer word_piece(const Section& file, const Section& model,
                              const std::vector<AddedToken>& added) {
  const Section normalizer =
      expected_section(file, "normalizer", "BertNormalizer");
  expected_section(file, "pre_tokenizer", "BertPreTokenizer");

  WordPieceOptions options;
  BertNormalization& how = options.normalization;
  how.clean_text = normalizer.flag("clean_text", true);
  how.split_ideographs = normalizer.flag("handle_chinese_chars", true);
  how.lowercase = normalizer.flag("lowercase", true);
  // null: accents go where case goes
  how.strip_accents = normalizer.flag("strip_accents", how.lowercase);

  options.unknown = model.text("unk_token", options.unknown);
  options.continuing_prefix =
      model.text("continuing_subword_prefix", options.continuing_prefix);
  if (model.has("max_input_chars_per_word")) {
    if (!model.at("max_input_chars_per_word").is_number_unsigned())
      model.refuse("max_input_chars_per_word", "an integer, 0 or more");
    options.longest_word =
        model.at("max_input_chars_per_word").get<std::size_t>();
  }
  return WordPieceTokenizer(
      model.place(), pieces_by_id(model.place(), model.at("vocab"), added),
      options);
}

// Older files do not name the model; its options tell.
std::string type_of(const Section& model) {
  if (model.has("type")) return model.type();
  if (model.has("merges")) return "BPE";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  model.refuse("type", "\"BPE\" or \"WordPiece\"");
}

}  // namespace

Tokenizer parse_tokenizer_json(std::string_view place, std::string_view text) {
  const json parsed = parse_json(place, text);
  const Section file(std::string(place), parsed);
  const Section model = file.section("model");
  const std::string type = type_of(model);
  const std::vector<AddedToken> added =
      parse_added_tokens(place, file.at("added_tokens"));
  if (type == "BPE") return Tokenizer(byte_pair(file, model, added), added);
  if (type == "WordPiece")
    return Tokenizer(word_piece(file, model, added), added);
  throw InputError(
      fmt::format("{}: of type {}, expected \"BPE\" or \"WordPiece\"",
                  model.place(), printable(type)));
}

WordPieceOptions parse_bert_config(std::string_view place,
                                   std::string_view text) {
  const json parsed = parse_json(place, text);
  const Section file(std::string(place), parsed);
  WordPieceOptions options;
  BertNormalization& how = options.normalization;
  how.lowercase = file.flag("do_lower_case", true);
  how.strip_accents = file.flag("strip_accents", how.lowercase);
  how.split_ideographs = file.flag("tokenize_chinese_chars", true);
  // under these names, or as objects with a content
  const char* keys[] = {"pad_token", "unk_token", "cls_token", "sep_token",
                        "mask_token"};
  for (std::size_t i = 0; i < options.special.size(); ++i) {
    const json& named = file.at(keys[i]);
    if (named.is_object())
      options.special[i] =
          file.section(keys[i]).text("content", options.special[i]);
    else
      options.special[i] = file.text(keys[i], options.special[i]);
  }
  options.unknown = options.special[1];
  return options;
}

}  // namespace lipscope
