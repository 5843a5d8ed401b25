#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/added_tokens.h"
#include "lipscope/text/pair_merges.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/token.h"

namespace lipscope {

/// The tokenizer of Llama in the form that llama2.c keeps it in, a file
/// tokenizer.bin:
///
///   int32                    the length of the longest piece
///   float32, int32, bytes    of each piece: its score, its length, itself
///
/// Ids 0, 1 and 2 are the unknown piece, the beginning and the end of a text;
/// ids 3 to 258 are the bytes, written "<0x0A>" or as the character of that
/// number; all others are pieces of text.
///
/// A text gets a blank before it, its characters become pieces, or, where there
/// is none, bytes, and of all neighbours that make a piece together those with
/// the highest score are merged first. The first three pieces and the bytes are
/// never merged; the first three are matched in a text by Tokenizer.
class LlamaTokenizer {
 public:
  /// From the content of the file. InputError, beginning with `place`, for a
  /// file that is cut short, whose lengths are not those of its pieces, whose
  /// scores are not finite, whose ids 3 to 258 are not the bytes, or that holds
  /// a piece twice.
  LlamaTokenizer(std::string_view place, std::span<const std::byte> content);

  /// InputError for text that is not UTF-8. The blank that was added stands at
  /// no byte: a token that is nothing else has begin = end = 0. What is not the
  /// beginning of a text, but follows a special token, gets no blank.
  std::vector<Token> encode(std::string_view text, bool beginning = true) const;

  /// The unknown piece, the beginning and the end of a text as they are written
  /// in one: <unk>, <s>, </s>. llama2.c's files have line ends around the last
  /// two, for printing.
  std::vector<AddedToken> special() const;

  /// The text of the ids. The beginning and the end of a text are not seen, and
  /// the first piece, or the first after a beginning, loses the blank that
  /// encode put there.
  std::string decode(std::span<const TokenId> ids) const;

  /// In order of id; the pieces of ids 3 to 258 are one byte each.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<std::string> pieces_;
  PieceIds ids_;  // of the pieces of text alone
  PairMerges merges_;
};

}  // namespace lipscope
