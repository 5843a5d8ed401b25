#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// Which pieces of a text are inputs: for each length so many windows, one
/// after the other, none overlapping [Castin24's protocol].
struct Windows {
  std::vector<Index> lengths;
  Index samples = 0;  ///< of each length

  Index tokens() const;  ///< that they take
};

/// 2, 4, …, 98 tokens, ten windows of each.
Windows usual_windows();

/// What a text of `tokens` tokens allows. Where neither lengths nor samples are
/// asked for: the usual windows if they fit, otherwise fewer samples and
/// shorter lengths, and of a text that has no room for four lengths all of it
/// as one window. No window is longer than `positions`. What is asked for is
/// kept, and the other chosen to fit; nothing if that is not possible.
std::optional<Windows> windows_within(
    Index tokens, Index positions,
    const std::optional<std::vector<Index>>& lengths,
    const std::optional<Index>& samples);

/// "lengths 2 to 12 in steps of 2, 3 windows of each".
std::string in_words(const Windows& windows);

/// "--lengths 2:14:2 --samples 3".
std::string as_options(const Windows& windows);

}  // namespace lipscope
