#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// Which neighbours may become one token, and in which order [Sennrich16].
class PairMerges {
 public:
  /// Lets `left` and `right`, side by side, become `merged`; smaller orders go
  /// first. False, and nothing is changed, if the pair was there before.
  bool add(TokenId left, TokenId right, TokenId merged, double order);

  /// The tokens after merging, again and again, the pair of the smallest order,
  /// the leftmost of equals, until no neighbours can be merged. O(n log n).
  std::vector<Token> apply(std::vector<Token> tokens) const;

 private:
  struct Merge {
    double order = 0.0;
    TokenId merged = 0;
  };
  const Merge* find(TokenId left, TokenId right) const;

  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace lipscope
