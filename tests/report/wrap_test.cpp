#include "lipscope/report/wrap.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace wrap_test {

TEST(DisplayWidth, CountsWhatATerminalShows) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("lower"), 5u);
  EXPECT_EQ(display_width("caf\u00e9"), 4u);   // two bytes, one column
  EXPECT_EQ(display_width("cafe\u0301"), 4u);  // e and an accent of its own
  EXPECT_EQ(display_width("\u6f22\u5b57"),
            4u);                             // two letters, two columns each
  EXPECT_EQ(display_width("\xff\xfe"), 2u);  // not UTF-8
}

TEST(Wrapped, BreaksBetweenWordsOnly) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("one two", 7), "one two");
  EXPECT_EQ(wrapped("one two", 6), "one\ntwo");
  // a word is never cut
  EXPECT_EQ(wrapped("a incomprehensible b", 5), "a\nincomprehensible\nb");
  EXPECT_EQ(wrapped("one  two", 0), "one  two");
  // what the text has between words stays, except at the end of a line
  EXPECT_EQ(wrapped("  one  two three", 10), "  one  two\nthree");
  // columns, not bytes
  EXPECT_EQ(wrapped("\u00e9\u00e9\u00e9 \u00e9\u00e9\u00e9", 7),
            "\u00e9\u00e9\u00e9 \u00e9\u00e9\u00e9");
}

TEST(Fitted, LeavesLinesThatFitAlone) {
  const std::string text = "short\n\n    a    b\n";
  EXPECT_EQ(fitted(text, 20), text);
  EXPECT_EQ(fitted("short\n  one two three\nend", 10),
            "short\n  one two\n  three\nend");
  EXPECT_EQ(fitted("one two three", 0), "one two three");
}

TEST(Legend, PutsMeaningsBesideTheirWords) {
  EXPECT_EQ(legend({{"n", "tokens"}, {"upper", "at most this many times"}}, 20),
            "n      tokens\nupper  at most this\n       many times\n");
}

}  // namespace wrap_test
}  // namespace lipscope
