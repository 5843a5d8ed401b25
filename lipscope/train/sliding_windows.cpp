#include "lipscope/train/sliding_windows.h"

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/train/cross_entropy.h"

namespace lipscope {

// With T = min(context, length) the model reads the T characters from every
// place s on. Of those, position j is what window s predicts at j; the last
// position, j = T − 1, is what every window predicts that has T characters
// ahead of it there, window s among them. Window i is at place s = i + j − T +
// 1 when it predicts at j ≥ T, so that the last position of place s counts for
// each window i with i + T − 1 ≤ s + T − 1 ≤ i + length − 1.
TextScore score_of(const NextToken& next, std::span<const int> text,
                   Index context, const SlidingWindows& windows, int threads,
                   Index together) {
  require(windows.count >= 1 && windows.length >= 1 && context >= 1 &&
              together >= 1,
          "sliding windows: {} of {}, a context of {}", windows.count,
          windows.length, context);
  require(static_cast<Index>(text.size()) >= windows.characters(),
          "sliding windows: {} characters, they need {}", text.size(),
          windows.characters());
  const Index T = std::min(context, windows.length);
  const Index places = windows.count + windows.length - T;
  double sum = 0.0, right = 0.0;
  for (Index first = 0; first < places; first += together) {
    const Index sequences = std::min(together, places - first);
    std::vector<int> tokens;
    for (Index s = first; s < first + sequences; ++s)
      tokens.insert(tokens.end(), text.begin() + s, text.begin() + s + T);
    const MatrixOf<float>& logits =
        next(tokens, {.sequences = sequences, .length = T, .threads = threads});
    for (Index s = first; s < first + sequences; ++s)
      for (Index j = 0; j < T; ++j) {
        const Index from = std::max<Index>(0, s - (windows.length - T));
        const Index last = std::min(s, windows.count - 1);
        const auto counts = static_cast<double>(
            j == T - 1 ? last - from + 1 : (s < windows.count ? 1 : 0));
        if (counts == 0.0) continue;
        const MatrixOf<float> row = logits.row((s - first) * T + j);
        const int target[] = {text[static_cast<std::size_t>(s + j + 1)]};
        sum += counts * cross_entropy(row, target);
        right += counts * static_cast<double>(likeliest(row, target));
      }
  }
  const auto predicted = static_cast<double>(windows.count * windows.length);
  return {.nll = sum / predicted, .accuracy = right / predicted};
}

}  // namespace lipscope
