#include "lipscope/text/words.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace words_test {

using Words = std::vector<std::string>;

TEST(Words, EndToEndAreTheText) {
  const std::string text = "Call me\n\nIshmael.";
  const std::vector<Token> tokens = {
      {1, 0, 4}, {2, 5, 7}, {3, 9, 12}, {4, 12, 16}, {5, 16, 17}};
  EXPECT_EQ(words_of(text, tokens),
            (Words{"Call", " me", "\n\nIsh", "mael", "."}));
}

TEST(Words, ShowWhatNoTokenStandsForAtBothEnds) {
  EXPECT_EQ(words_of("  a b\n", std::vector<Token>{{1, 2, 3}, {2, 3, 5}}),
            (Words{"  a", " b\n"}));
}

TEST(Words, AreAlwaysUtf8) {
  // an em dash, E2 80 94, cut by two tokens of GPT-2: the first shows it
  EXPECT_EQ(words_of("a\xE2\x80\x94z",
                     std::vector<Token>{{1, 0, 1}, {2, 1, 3}, {3, 3, 5}}),
            (Words{"a", "\u2014", "z"}));
}

TEST(Words, ShowACharacterThatWasTakenApartOnce) {
  EXPECT_EQ(
      words_of("a½b",
               std::vector<Token>{{1, 0, 1}, {2, 1, 3}, {3, 1, 3}, {4, 3, 4}}),
      (Words{"a", "½", "", "b"}));
}

TEST(Words, KeepTheOrderOfTheTextWhereMarksChangedPlaces) {
  EXPECT_EQ(
      words_of("abcd", std::vector<Token>{{1, 0, 3}, {2, 1, 2}, {3, 3, 4}}),
      (Words{"abc", "", "d"}));
}

TEST(Words, OfNothingAreNone) { EXPECT_EQ(words_of("abc", {}), Words{}); }

}  // namespace words_test
}  // namespace lipscope
