#include "lipscope/text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/text/bert_files.h"
#include "lipscope/text/gpt2_files.h"
#include "lipscope/text/json_section.h"
#include "lipscope/text/tokenizer_json.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()),
          file.bytes().size()};
}

// The pieces of these names, as far as there are such.
std::vector<AddedToken> named_pieces(const std::vector<std::string>& pieces,
                                     const std::vector<std::string>& names) {
  std::vector<AddedToken> tokens;
  for (const std::string& name : names) {
    const auto found = std::find(pieces.begin(), pieces.end(), name);
    if (found != pieces.end())
      tokens.push_back({.content = name,
                        .id = static_cast<TokenId>(found - pieces.begin())});
  }
  return tokens;
}

// the text at a key of a JSON file; empty where either is missing
std::string text_at(const std::filesystem::path& path, const char* key) {
  if (!std::filesystem::exists(path)) return "";
  const nlohmann::json parsed =
      parse_json(path.string(), text_of(MappedFile(path)));
  return JsonSection(path.string(), parsed).text(key, "");
}

// Files of the same names are cut into by several tokenizers of transformers,
// in other ways (Qwen2Tokenizer, BertJapaneseTokenizer).
struct KnownReaders {
  std::vector<std::string> classes;
  /// Models whose tokenizer is one of these; empty: any.
  std::vector<std::string> models = {};
};

// tokenizer_config.json names the class that reads the files beside it; where
// it does not, config.json names the model. What is unknown is refused.
void require_known(const std::filesystem::path& vocabulary,
                   const KnownReaders& known) {
  const auto require_among = [&](const char* file, const char* key,
                                 const std::string& name,
                                 const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(fmt::format(
          "{}: {} is {}, whose texts are cut by a tokenizer.json and not by {}",
          (vocabulary.parent_path() / file).string(), key, printable(name),
          vocabulary.filename().string()));
  };
  const std::filesystem::path folder = vocabulary.parent_path();
  std::string name =
      text_at(folder / "tokenizer_config.json", "tokenizer_class");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (!name.empty()) {
    require_among("tokenizer_config.json", "tokenizer_class", name,
                  known.classes);
    return;
  }
  const std::string model = text_at(folder / "config.json", "model_type");
  if (!model.empty() && !known.models.empty())
    require_among("config.json", "model_type", model, known.models);
}

Tokenizer load_gpt2(const std::filesystem::path& vocabulary,
                    const std::filesystem::path& merges) {
  if (!std::filesystem::exists(merges))
    throw InputError(fmt::format("{}: has no {} beside it", vocabulary.string(),
                                 merges.filename().string()));
  require_known(vocabulary,
                {.classes = {"GPT2Tokenizer"},
                 .models = {"gpt2", "gpt_neo", "gpt_neox", "gptj"}});
  const MappedFile vocabulary_file(vocabulary);
  const MappedFile merges_file(merges);
  Pipeline pairs =
      parse_gpt2_files(vocabulary.string(), text_of(vocabulary_file),
                       merges.string(), text_of(merges_file));
  const std::vector<AddedToken> added =
      named_pieces(pairs.pieces(), {"<|endoftext|>"});
  return Tokenizer(std::move(pairs), added);
}

Tokenizer load_bert(const std::filesystem::path& vocabulary,
                    const std::filesystem::path& config) {
  require_known(vocabulary, {.classes = {"BertTokenizer", "DistilBertTokenizer",
                                         "ElectraTokenizer", "MPNetTokenizer",
                                         "MobileBertTokenizer"}});
  BertOptions options;
  if (std::filesystem::exists(config))
    options = parse_bert_config(config.string(), text_of(MappedFile(config)));
  Pipeline words = parse_bert_vocabulary(
      vocabulary.string(), text_of(MappedFile(vocabulary)), options);
  const std::vector<AddedToken> added =
      named_pieces(words.pieces(), options.special);
  return Tokenizer(std::move(words), added);
}

Tokenizer load_llama(const std::filesystem::path& path) {
  LlamaTokenizer llama(path.string(), MappedFile(path).bytes());
  const std::vector<AddedToken> added = llama.special();
  return Tokenizer(std::move(llama), added);
}

}  // namespace

Tokenizer::Tokenizer(Kind kind, const std::vector<AddedToken>& added)
    : kind_(std::move(kind)) {
  std::vector<AddedToken> verbatim, normalized;
  const auto* pipeline = std::get_if<Pipeline>(&kind_);
  for (AddedToken token : added) {
    require(token.id >= 0 && token.id < vocabulary_size(),
            "Tokenizer: the added token {} has id {}, of a vocabulary of {}",
            token.content, token.id, vocabulary_size());
    if (token.normalized && pipeline)
      token.content = pipeline->normalized(token.content);
    // only a pipeline normalises
    (token.normalized && pipeline ? normalized : verbatim)
        .push_back(std::move(token));
  }
  verbatim_ = AddedTokens(std::move(verbatim));
  normalized_ = AddedTokens(std::move(normalized));
}

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  check_utf8(text);
  std::vector<Token> tokens;
  for (const TextSpan& span : verbatim_.split(text)) {
    if (span.id) {
      tokens.push_back({*span.id, span.begin, span.end});
      continue;
    }
    const std::string_view part =
        text.substr(span.begin, span.end - span.begin);
    for (const Token& token : encode_between(part, span.begin))
      tokens.push_back(token);
  }
  return tokens;
}

std::vector<Token> Tokenizer::encode_between(std::string_view text,
                                             std::size_t begin) const {
  if (const auto* pipeline = std::get_if<Pipeline>(&kind_))
    return pipeline->encode(text, begin, normalized_);
  const auto* llama = std::get_if<LlamaTokenizer>(&kind_);
  std::vector<Token> tokens = llama ? llama->encode(text, begin == 0)
                                    : std::get<Vocabulary>(kind_).encode(text);
  for (Token& token : tokens) {
    token.begin += begin;
    token.end += begin;
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) piece(id);  // every one is there
  return std::visit([&](const auto& kind) { return kind.decode(ids); }, kind_);
}

const std::string& Tokenizer::piece(TokenId id) const {
  require(id >= 0 && id < vocabulary_size(),
          "Tokenizer: id {} is not one of the {} of the vocabulary", id,
          vocabulary_size());
  return pieces()[id];
}

TokenId Tokenizer::vocabulary_size() const {
  return static_cast<TokenId>(pieces().size());
}

const std::vector<std::string>& Tokenizer::pieces() const {
  return std::visit(
      [](const auto& kind) -> const std::vector<std::string>& {
        return kind.pieces();
      },
      kind_);
}

std::vector<TokenId> ids_of(std::span<const Token> tokens) {
  std::vector<TokenId> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

Tokenizer load_tokenizer(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder / name);
  };
  if (has("tokenizer.json")) {
    const std::filesystem::path path = folder / "tokenizer.json";
    return parse_tokenizer_json(path.string(), text_of(MappedFile(path)));
  }
  if (has("vocab.json"))
    return load_gpt2(folder / "vocab.json", folder / "merges.txt");
  if (has("encoder.json"))
    return load_gpt2(folder / "encoder.json", folder / "vocab.bpe");
  if (has("vocab.txt"))
    return load_bert(folder / "vocab.txt", folder / "tokenizer_config.json");
  if (has("tokenizer.bin")) return load_llama(folder / "tokenizer.bin");
  if (has("config.json")) {
    const std::filesystem::path path = folder / "config.json";
    const MappedFile file(path);
    if (parse_json(path.string(), text_of(file)).contains("characters"))
      return Tokenizer(parse_vocabulary(path.string(), text_of(file)));
  }
  throw InputError(fmt::format(
      "{}: no tokenizer there, none of tokenizer.json, vocab.json with "
      "merges.txt, encoder.json with vocab.bpe, vocab.txt, tokenizer.bin, "
      "config.json with characters",
      folder.string()));
}

Tokenizer load_tokenizer(const std::filesystem::path& folder,
                         std::ptrdiff_t vocabulary) {
  Tokenizer tokenizer = load_tokenizer(folder);
  if (tokenizer.vocabulary_size() > vocabulary)
    throw InputError(fmt::format(
        "{}: the tokenizer has {} pieces and the model a vocabulary of {} "
        "(vocab_size of config.json): they do not belong together",
        folder.string(), tokenizer.vocabulary_size(), vocabulary));
  return tokenizer;
}

}  // namespace lipscope
