#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// Tokens begin, …, end − 1.
struct TokenRange {
  Index begin = 0, end = 0;

  Index size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

/// Which tokens a token sees: of all n, those that nothing here hides. What is
/// left is a range, and so are the tokens that see a token.
struct Mask {
  /// Token i sees none after itself.
  bool hides_later = false;
  /// Token i sees those less than this away, |i − j| < window.
  std::optional<Index> window = {};
  /// Padding: the first tokens and the last ones that no token sees. They look
  /// at the others as all tokens do.
  Index padding_before = 0, padding_after = 0;

  static const Mask none, causal;

  bool operator==(const Mask&) const = default;
};

inline constexpr Mask Mask::none{};
inline constexpr Mask Mask::causal{.hides_later = true};

/// What token i sees of n tokens.
inline TokenRange visible(const Mask& mask, Index i, Index n) {
  TokenRange seen{mask.padding_before, n - mask.padding_after};
  if (mask.hides_later) seen.end = std::min(seen.end, i + 1);
  if (mask.window) {
    seen.begin = std::max(seen.begin, i - *mask.window + 1);
    seen.end = std::min(seen.end, i + *mask.window);
  }
  return seen;
}

/// The tokens that see token j of n tokens; empty for padding.
inline TokenRange seeing(const Mask& mask, Index j, Index n) {
  if (j < mask.padding_before || j >= n - mask.padding_after) return {j, j};
  TokenRange seen{mask.hides_later ? j : 0, n};
  if (mask.window) {
    seen.begin = std::max(seen.begin, j - *mask.window + 1);
    seen.end = std::min(seen.end, j + *mask.window);
  }
  return seen;
}

/// The most tokens that one token of n sees.
Index most_visible(const Mask& mask, Index n);

/// The most tokens of n that see one token.
Index most_seeing(const Mask& mask, Index n);

/// The same mask for n tokens, without a window that hides none of them.
Mask at_length(Mask mask, Index n);

/// "none", "causal", "window 64", "causal, window 64", and with padding
/// "causal, padding 0 before and 3 after".
std::string name_of(const Mask& mask);

/// Throws std::invalid_argument, with the numbers, unless each of n tokens sees
/// at least one.
void require_sound(const Mask& mask, Index n);

}  // namespace lipscope
