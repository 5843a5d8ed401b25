#include "lipscope/text/tokenizer.h"

#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/text/tokenizer_json.h"

namespace lipscope {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()),
          file.bytes().size()};
}

Tokenizer load_byte_pair(const std::filesystem::path& vocabulary,
                         const std::filesystem::path& merges) {
  if (!std::filesystem::exists(merges))
    throw InputError(fmt::format("{}: has no {} beside it", vocabulary.string(),
                                 merges.filename().string()));
  const MappedFile vocabulary_file(vocabulary);
  const MappedFile merges_file(merges);
  return Tokenizer(parse_byte_pair(vocabulary.string(),
                                   text_of(vocabulary_file), merges.string(),
                                   text_of(merges_file)));
}

Tokenizer load_word_piece(const std::filesystem::path& vocabulary,
                          const std::filesystem::path& config) {
  WordPieceOptions options;
  if (std::filesystem::exists(config))
    options = parse_bert_config(config.string(), text_of(MappedFile(config)));
  return Tokenizer(parse_word_piece(vocabulary.string(),
                                    text_of(MappedFile(vocabulary)), options));
}

}  // namespace

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  return std::visit([&](const auto& kind) { return kind.encode(text); }, kind_);
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
    return load_byte_pair(folder / "vocab.json", folder / "merges.txt");
  if (has("encoder.json"))
    return load_byte_pair(folder / "encoder.json", folder / "vocab.bpe");
  if (has("vocab.txt"))
    return load_word_piece(folder / "vocab.txt",
                           folder / "tokenizer_config.json");
  if (has("tokenizer.bin")) {
    const std::filesystem::path path = folder / "tokenizer.bin";
    return Tokenizer(LlamaTokenizer(path.string(), MappedFile(path).bytes()));
  }
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

}  // namespace lipscope
