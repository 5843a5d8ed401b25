#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lipscope/text/added_tokens.h"
#include "lipscope/text/llama_tokenizer.h"
#include "lipscope/text/pipeline.h"
#include "lipscope/text/token.h"
#include "lipscope/text/vocabulary.h"

namespace lipscope {

/// What turns text into token ids: in the steps of a pipeline, as Hugging
/// Face's tokenizers do, Llama's way, or character by character.
///
/// The ids are those of the text and nothing else. No special token is added
/// ([CLS], the beginning of a text), and nothing is cut off or filled up. One
/// that stands in the text is that token, as in Hugging Face's tokenizers: the
/// text is cut at the added tokens, and what lies between is encoded by itself.
class Tokenizer {
 public:
  using Kind = std::variant<Pipeline, LlamaTokenizer, Vocabulary>;

  explicit Tokenizer(Kind kind, const std::vector<AddedToken>& added = {});

  /// The tokens of the text, with the bytes they stand at; see the kinds
  /// for what that means at the edges. InputError, with the byte, for text that
  /// is not UTF-8.
  std::vector<Token> encode(std::string_view text) const;

  /// The text that the ids stand for, as far as the kind can tell: BERT's has
  /// lost its case, its accents and its blanks.
  std::string decode(std::span<const TokenId> ids) const;

  /// One piece: its bytes, which may be part of a character; as it is written
  /// in the vocabulary, for BERT.
  const std::string& piece(TokenId id) const;

  /// All of them, by their ids.
  const std::vector<std::string>& pieces() const;

  /// How many pieces there are; ids are below it.
  TokenId vocabulary_size() const;

 private:
  // of what stands at byte `begin`, between the tokens that are found first
  std::vector<Token> encode_between(std::string_view text,
                                    std::size_t begin) const;

  Kind kind_;
  AddedTokens verbatim_, normalized_;
};

/// The ids alone.
std::vector<TokenId> ids_of(std::span<const Token> tokens);

/// The tokenizer of a model's folder, from the first of these that is there:
///
///   tokenizer.json                 Hugging Face's (tokenizer_json.h)
///   vocab.json with merges.txt     GPT-2
///   encoder.json with vocab.bpe    GPT-2 as first published
///   vocab.txt                      BERT, uncased unless a
///                                  tokenizer_config.json beside it says
///                                  otherwise
///   tokenizer.bin                  Llama, as llama2.c has it
///   config.json with characters    character by character, as lipscope trains
///
/// Added tokens are those that tokenizer.json lists; of the others GPT-2's
/// <|endoftext|>, BERT's [PAD], [UNK], [CLS], [SEP], [MASK] (or what its
/// configuration calls them), and Llama's <unk>, <s>, </s>.
///
/// InputError if there is none, and, with the file and the place in it, for one
/// that is malformed, or asks for something that is not implemented.
Tokenizer load_tokenizer(const std::filesystem::path& folder);

/// The same, with InputError if it has more pieces than the model knows.
Tokenizer load_tokenizer(const std::filesystem::path& folder,
                         std::ptrdiff_t vocabulary);

}  // namespace lipscope
