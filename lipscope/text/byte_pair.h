#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lipscope/text/pair_merges.h"
#include "lipscope/text/pieces.h"
#include "lipscope/text/token.h"

namespace lipscope {

/// A merge as files have it: its two halves as the vocabulary spells them.
using SpelledMerge = std::pair<std::string, std::string>;

struct BytePairOptions {
  std::optional<std::string>
      unknown;                ///< for what the vocabulary does not have
  bool fuse_unknown = false;  ///< neighbours that are unknown are one
  /// A character without a piece is its bytes, <0x00> to <0xFF>.
  bool byte_fallback = false;
  /// A word that is a piece is that piece, whatever the merges say.
  bool ignore_merges = false;
  std::string continuing_prefix;   ///< of all characters but a word's first
  std::string end_of_word_suffix;  ///< of a word's last character
};

/// Byte-pair encoding [Sennrich16]: the characters of a word are merged in the
/// order in which the merges were learnt.
class BytePair {
 public:
  /// InputError, beginning with `place`, for a merge that names or makes a
  /// piece that is not there, or that stands there twice, and for an unknown
  /// piece that is not there.
  BytePair(std::string_view place, PieceIds ids,
           const std::vector<SpelledMerge>& merges, BytePairOptions options);

  /// The pieces of a word, with its bytes that they stand at. InputError for a
  /// character without a piece where there is no unknown one.
  std::vector<Token> encode(std::string_view word) const;

 private:
  PieceIds ids_;
  BytePairOptions options_;
  PairMerges merges_;
  std::optional<TokenId> unknown_;
  std::array<TokenId, 256> byte_ids_;  // of <0x00> ...; −1 where there is none
};

}  // namespace lipscope
