#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/added_tokens.h"
#include "lipscope/text/bert_words.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/token.h"

namespace lipscope {

struct WordPieceOptions {
  BertNormalization normalization;
  std::string unknown = "[UNK]";
  std::string continuing_prefix = "##";
  std::size_t longest_word = 100;  ///< in characters; a longer one is unknown
  /// Of a vocab.txt: tokens that are one wherever they stand in a text, as far
  /// as the vocabulary has them.
  std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                      "[MASK]"};
};

/// BERT's WordPiece [Devlin19]: every word of the normalised text
/// (bert_words.h) is taken apart from the left, each time by the longest piece
/// that fits; pieces that do not begin a word are written with the prefix. A
/// word that does not come out even is the unknown token as a whole.
class WordPieceTokenizer {
 public:
  /// From the pieces in order of id. InputError, beginning with `place`, for a
  /// piece that stands there twice, and if the unknown one is not there.
  WordPieceTokenizer(std::string_view place, std::vector<std::string> pieces,
                     WordPieceOptions options);

  /// InputError for text that is not UTF-8. A token reaches from the
  /// leftmost to the rightmost character that went into it; where one character
  /// was taken apart, several tokens may stand at it.
  /// `added` are looked for in the normalised text, and must be in that form.
  std::vector<Token> encode(std::string_view text,
                            const AddedTokens& added = {}) const;

  /// A text after normalisation.
  std::string normalized(std::string_view text) const;

  /// The words with blanks between them: not the text, of which normalisation
  /// has kept less.
  std::string decode(std::span<const TokenId> ids) const;

  /// In order of id, as the file has them.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<Token> encode_word(const BertWord& word) const;

  std::vector<std::string> pieces_;
  WordPieceOptions options_;
  PieceIds beginning_;             // pieces that may begin a word: all of them
  PieceIds continuing_;            // those with the prefix, without it
  std::size_t longest_piece_ = 0;  // in bytes
  TokenId unknown_ = 0;
};

/// From the content of a vocab.txt: one piece a line, ids from 0.
WordPieceTokenizer parse_word_piece(std::string_view place,
                                    std::string_view text,
                                    const WordPieceOptions& options);

}  // namespace lipscope
