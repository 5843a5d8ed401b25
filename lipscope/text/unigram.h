#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lipscope/text/pieces.h"
#include "lipscope/text/token.h"

namespace lipscope {

struct ScoredPiece {
  std::string piece;
  double score = 0;  ///< the logarithm of its probability
};

struct UnigramOptions {
  std::optional<TokenId> unknown;
  /// What the vocabulary does not have is its bytes, <0x00> to <0xFF>.
  bool byte_fallback = false;
};

/// The unigram language model [Kudo18]: of all ways to write a word in pieces
/// the one with the largest sum of scores, found by Viterbi's recursion over
/// the places between characters. A character that is no piece costs 10 more
/// than the worst piece; neighbours of this kind are one unknown token.
class Unigram {
 public:
  /// From the pieces in order of id. InputError, beginning with `place`, for a
  /// piece that stands there twice, and for an unknown id that is not there.
  Unigram(std::string_view place, const std::vector<ScoredPiece>& pieces,
          UnigramOptions options);

  /// The pieces of a word, with its bytes that they stand at. InputError for a
  /// character without a piece where there is no unknown one.
  std::vector<Token> encode(std::string_view word) const;

 private:
  struct Span {
    std::size_t begin = 0, end = 0;
  };
  std::vector<Span> best_path(std::string_view word) const;

  static constexpr std::uint32_t root = 0;
  std::optional<std::uint32_t> child(std::uint32_t node, char byte) const;

  PieceIds ids_;
  std::vector<double> scores_;
  double worst_score_ = 0;
  UnigramOptions options_;
  std::array<TokenId, 256> byte_ids_;  // −1 where there is none
  // a trie of the pieces: children by node and byte, ids by node (−1: none)
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<TokenId> ends_;
};

}  // namespace lipscope
