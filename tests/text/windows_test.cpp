#include "lipscope/text/windows.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace windows_test {

constexpr Index many = 1024;

Windows within(Index tokens, Index positions = many) {
  return windows_within(tokens, positions, {}, {}).value();
}

TEST(Windows, AreTheUsualOnesOfALongText) {
  // 10 (2 + 4 + … + 98) = 10 · 2 · 49 · 50/2
  EXPECT_EQ(usual_windows().tokens(), 24500);
  EXPECT_EQ(within(24500).lengths, usual_windows().lengths);
  EXPECT_EQ(within(24500).samples, 10);
  EXPECT_EQ(within(24499).lengths.back(), 96);
  EXPECT_EQ(within(24499).samples, 10);
}

TEST(Windows, AreFewerAndShorterInAShortText) {
  EXPECT_EQ(in_words(within(89)),
            "lengths 2 to 12 in steps of 2, 2 windows of each");
  EXPECT_EQ(as_options(within(89)), "--lengths 2:14:2 --samples 2");
  EXPECT_EQ(in_words(within(200)),
            "lengths 2 to 14 in steps of 2, 3 windows of each");
  EXPECT_EQ(in_words(within(29)),
            "lengths 2 to 8 in steps of 2, 1 window of each");
  // no room for four lengths: all of it
  EXPECT_EQ(in_words(within(19)), "length 19, 1 window");
  EXPECT_EQ(in_words(within(1)), "length 1, 1 window");
  EXPECT_FALSE(windows_within(0, many, {}, {}));
}

TEST(Windows, AlwaysFitIntoTheTextAndTheModel) {
  for (Index tokens = 1; tokens < 3000; ++tokens)
    for (const Index positions : {1, 3, 8, 16, 33, 512}) {
      const Windows w = within(tokens, positions);
      EXPECT_LE(w.tokens(), tokens);
      EXPECT_LE(w.lengths.back(), positions);
      EXPECT_GE(w.samples, 1);
    }
}

TEST(Windows, KeepWhatIsAskedFor) {
  const std::vector<Index> lengths = {8, 32};
  EXPECT_EQ(windows_within(400, many, lengths, {})->samples, 10);
  EXPECT_EQ(windows_within(89, many, lengths, {})->samples, 2);
  EXPECT_FALSE(windows_within(39, many, lengths, {}));
  EXPECT_FALSE(windows_within(400, 31, lengths, {}));
  EXPECT_FALSE(windows_within(89, many, lengths, 3));
  EXPECT_EQ(windows_within(89, many, {}, 4)->lengths.back(), 8);
  EXPECT_EQ(windows_within(89, many, {}, 80)->lengths, std::vector<Index>({1}));
  EXPECT_FALSE(windows_within(89, many, {}, 90));
}

TEST(Windows, AreSaidAsTheyWouldBeAskedFor) {
  EXPECT_EQ(as_options({.lengths = {8, 32}, .samples = 1}),
            "--lengths 8,32 --samples 1");
  EXPECT_EQ(in_words({.lengths = {8, 32}, .samples = 1}),
            "lengths 8, 32, 1 window of each");
}

}  // namespace windows_test
}  // namespace lipscope
