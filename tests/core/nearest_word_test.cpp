#include "lipscope/core/nearest_word.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace nearest_word_test {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("mesure", "measure"), 1u);   // one left out
  EXPECT_EQ(edit_distance("meausre", "measure"), 1u);  // two exchanged
  EXPECT_EQ(edit_distance("measure", "measure"), 0u);
}

TEST(NearestWord, IsWhatWasProbablyMeant) {
  const std::vector<std::string> words = {"measure", "meanfield", "bound",
                                          "train"};
  EXPECT_EQ(nearest_word("mesure", words), "measure");
  EXPECT_EQ(nearest_word("bond", words), "bound");
  EXPECT_EQ(nearest_word("meas", words), "measure");  // begins so
  EXPECT_FALSE(nearest_word("mea", words));           // two begin so
  EXPECT_FALSE(nearest_word("wobble", words));
  EXPECT_FALSE(nearest_word("", words));
  EXPECT_FALSE(nearest_word(std::string(100000, 'm'), words));
  EXPECT_EQ(did_you_mean("mesure", words), "; did you mean measure?");
  EXPECT_EQ(did_you_mean("mesure", words, "See x."),
            "; did you mean measure? See x.");
  EXPECT_EQ(did_you_mean("wobble", words, "See x."), "; See x.");
  EXPECT_EQ(did_you_mean("wobble", words), "");
}

}  // namespace nearest_word_test
}  // namespace lipscope
