#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lipscope/text/pair_merges.h"
#include "lipscope/text/token.h"

namespace lipscope {

/// A merge as files have it: its two halves in GPT-2's spelling.
using SpelledMerge = std::pair<std::string, std::string>;

/// GPT-2's byte-level byte-pair encoding [Radford19]: the text is cut into
/// words (gpt2_words.h), and the bytes of every word are merged in the order in
/// which the merges were learnt. Every text in UTF-8 can be encoded, and comes
/// back from its ids.
///
/// Files spell a byte as a visible character: itself where it is one in
/// Latin-1, else U+0100, U+0101, ... in turn (a blank is U+0120). Here pieces
/// are the bytes themselves.
class BytePairTokenizer {
 public:
  /// From pieces, in order of id, and merges, first to last, in the spelling of
  /// the files. InputError, beginning with `place`, for a merge that names or
  /// makes a piece that is not there, or that stands there twice.
  ///
  /// With `add_prefix_space` a text that begins with no blank gets one, which
  /// stands at no byte.
  BytePairTokenizer(std::string_view place,
                    const std::vector<std::string>& spelled,
                    const std::vector<SpelledMerge>& merges,
                    bool add_prefix_space = false);

  /// InputError for text that is not UTF-8, and for a byte that is no piece of
  /// a vocabulary that has not got all 256. A token may begin and end within a
  /// character.
  std::vector<Token> encode(std::string_view text) const;
  std::string decode(std::span<const TokenId> ids) const;

  /// In order of id; a piece is the bytes it stands for.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<Token> encode_word(std::string_view word) const;

  std::vector<std::string> pieces_;
  std::array<TokenId, 256> byte_ids_;  // −1 where there is none
  PairMerges merges_;
  bool add_prefix_space_ = false;
};

/// The merges of a merges.txt or vocab.bpe: two pieces a line, after a first
/// line "#version: ..." that may be missing. InputError with the line.
std::vector<SpelledMerge> parse_merges(std::string_view place,
                                       std::string_view text);

/// From the contents of a vocab.json (or encoder.json) and of a merges.txt (or
/// vocab.bpe).
BytePairTokenizer parse_byte_pair(std::string_view vocabulary_place,
                                  std::string_view vocabulary,
                                  std::string_view merges_place,
                                  std::string_view merges);

}  // namespace lipscope
