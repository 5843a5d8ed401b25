#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lipscope/text/added_tokens.h"
#include "lipscope/text/byte_pair.h"
#include "lipscope/text/normalizers.h"
#include "lipscope/text/pre_tokenizers.h"
#include "lipscope/text/spelling.h"
#include "lipscope/text/token.h"
#include "lipscope/text/unigram.h"
#include "lipscope/text/word_piece.h"

namespace lipscope {

/// A tokenizer in steps, as Hugging Face's tokenizers have it: the normalizer
/// changes the characters of a text, the pre-tokenizer cuts it into words, and
/// the model writes each word in pieces of its vocabulary.
class Pipeline {
 public:
  using Model = std::variant<BytePair, WordPiece, Unigram>;

  /// A normalizer or pre-tokenizer that is empty does nothing. `spelled`: the
  /// pieces in order of id, as the vocabulary writes them.
  Pipeline(Normalizer normalizer, PreTokenizer pre_tokenizer, Model model,
           const std::vector<std::string>& spelled, Spelling spelling);

  /// The tokens of a text that is UTF-8 and stands at byte `begin` of a longer
  /// one, in which their places are counted. A token reaches from the leftmost
  /// to the rightmost character that went into it; where one character was
  /// taken apart, several tokens may stand at it. `added` are looked for in
  /// the normalised text, and must be in that form.
  std::vector<Token> encode(std::string_view text, std::size_t begin,
                            const AddedTokens& added) const;

  /// A text after normalisation.
  std::string normalized(std::string_view text) const;

  std::string decode(std::span<const TokenId> ids) const {
    return spelling_.joined(pieces_, ids);
  }

  /// In order of id: what each piece stands for.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  SourcedText normalized(SourcedText text) const;
  std::vector<SourcedText> words(SourcedText text) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Model model_;
  Spelling spelling_;
  std::vector<std::string> pieces_;
};

}  // namespace lipscope
