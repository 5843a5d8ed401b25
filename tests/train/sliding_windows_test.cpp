#include "lipscope/train/sliding_windows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/train/cross_entropy.h"

namespace lipscope::test {
namespace sliding_windows_test {

// A model whose logits depend on all that it reads: a hash of the tokens so
// far.
NextToken hashing(Index characters) {
  const auto logits = std::make_shared<MatrixOf<float>>();
  return [logits, characters](std::span<const int> tokens,
                              const Pass& pass) -> const MatrixOf<float>& {
    logits->resize(pass.rows(), characters);
    for (Index s = 0; s < pass.sequences; ++s) {
      double hash = 0.3;
      for (Index i = 0; i < pass.length; ++i) {
        hash = std::sin(3 * hash + tokens[s * pass.length + i]);
        for (Index c = 0; c < characters; ++c)
          (*logits)(s * pass.length + i, c) =
              static_cast<float>(std::sin(7 * hash + 1.7 * c));
      }
    }
    return *logits;
  };
}

// window by window and character by character
TextScore slowly(const NextToken& next, const std::vector<int>& text,
                 Index context, const SlidingWindows& windows) {
  TextScore sum;
  for (Index i = 0; i < windows.count; ++i)
    for (Index j = 0; j < windows.length; ++j) {
      const Index n = std::min(j + 1, context);
      const auto& logits =
          next(std::span(text).subspan(i + j + 1 - n, n), {.length = n});
      const MatrixOf<float> last = logits.row(n - 1);
      const int target[] = {text[i + j + 1]};
      sum.nll += cross_entropy(last, target);
      sum.accuracy += static_cast<double>(likeliest(last, target));
    }
  const auto all = static_cast<double>(windows.count * windows.length);
  return {sum.nll / all, sum.accuracy / all};
}

TEST(SlidingWindows, PredictEachCharacterFromThoseBeforeItInItsWindow) {
  std::vector<int> text;
  for (int i = 0; i < 40; ++i) text.push_back((i * i + i / 3) % 5);
  const NextToken next = hashing(5);
  for (const SlidingWindows windows :
       {SlidingWindows{7, 6}, SlidingWindows{3, 12}, SlidingWindows{1, 5}})
    for (const Index context : {1, 2, 5, 6, 12, 30})
      for (const Index together : {1, 4}) {
        const TextScore fast =
            score_of(next, text, context, windows, 1, together);
        const TextScore slow = slowly(next, text, context, windows);
        EXPECT_NEAR(fast.nll, slow.nll, 1e-12)
            << windows.count << " of " << windows.length << ", " << context;
        EXPECT_NEAR(fast.accuracy, slow.accuracy, 1e-12);
      }
}

TEST(SlidingWindows, AreThoseOfThePaperUnlessToldOtherwise) {
  EXPECT_EQ(SlidingWindows{}.count, 1280);
  EXPECT_EQ(SlidingWindows{}.length, 256);
  EXPECT_EQ(SlidingWindows{}.characters(), 1536);
  EXPECT_THROW(
      score_of(hashing(5), std::vector<int>(1535, 0), 8, SlidingWindows{}, 1),
      std::invalid_argument);
}

}  // namespace sliding_windows_test
}  // namespace lipscope::test
