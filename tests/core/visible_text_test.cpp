#include "lipscope/core/visible_text.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace visible_text_test {

TEST(VisibleText, LeavesWhatPeopleReadAsItIs) {
  for (const char* plain :
       {"", "a b", "\xc3\xa9", "\xe4\xb8\xad\xe6\x96\x87", "\xf0\x9f\x99\x82",
        "\\x1b", "a\nb\tc", "\xef\xbf\xbd", "\x7e"})
    EXPECT_EQ(visible_text(plain), plain);
}

TEST(VisibleText, WritesOutWhatATerminalObeys) {
  EXPECT_EQ(visible_text("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(visible_text("a\rb\x07"), "a\\x0db\\x07");
  EXPECT_EQ(visible_text("\x7f"), "\\x7f");
  EXPECT_EQ(visible_text(std::string_view("\0", 1)), "\\x00");
  // U+009B begins an escape sequence as well
  EXPECT_EQ(visible_text("\xc2\x9b"
                         "31m"),
            "\\u009b31m");
  EXPECT_EQ(visible_text("\xc2\xa0"), "\xc2\xa0");
}

TEST(VisibleText, WritesOutWhatTurnsTheDirection) {
  EXPECT_EQ(visible_text("a\xe2\x80\xae"
                         "b"),
            "a\\u202eb");
  EXPECT_EQ(visible_text("\xe2\x81\xa6"), "\\u2066");
}

TEST(VisibleText, WritesOutBytesThatAreNotUtf8) {
  EXPECT_EQ(visible_text("\xff"), "\\xff");
  EXPECT_EQ(visible_text("\x9b"
                         "31m"),
            "\\x9b31m");
  EXPECT_EQ(visible_text("\xc3"), "\\xc3");           // cut short
  EXPECT_EQ(visible_text("\xc0\x9b"), "\\xc0\\x9b");  // longer than needed
  EXPECT_EQ(visible_text("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(visible_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(visible_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(VisibleText, OfALineHasNoOtherLines) {
  EXPECT_EQ(visible_line("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(visible_line("\x1b[2J\n"), "\\x1b[2J\\n");
}

}  // namespace visible_text_test
}  // namespace lipscope
