#pragma once

#include <span>

#include "lipscope/train/next_token.h"

namespace lipscope {

/// Windows of a text of which each begins one character after the one before
/// it. The default are those by which Newhouse25 judges models: 1,280 windows
/// of 256 characters, within the first 1,536 characters of the last tenth of
/// the text. Window i reads the characters i … i + 255 and predicts i + 1 …
/// i + 256; the score is the mean over all 1,280 · 256 predictions, in which
/// the first characters of a window are predicted from few.
struct SlidingWindows {
  Index count = 1280, length = 256;

  /// How many characters of a text they read and predict.
  Index characters() const { return count + length; }
};

/// How well a model predicts the text in these windows. Where it reads fewer
/// than `length` characters at once, it predicts each from those before it in
/// the window, the last `context` of them.
TextScore score_of(const NextToken& next, std::span<const int> text,
                   Index context, const SlidingWindows& windows,
                   int threads = 0, Index together = windows_together);

}  // namespace lipscope
