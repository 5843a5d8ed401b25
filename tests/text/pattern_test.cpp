#include "lipscope/text/pattern.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/text/pcre2_regex.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace pattern_test {

using Strings = std::vector<std::string>;

// The matches in brackets.
std::string cut(const Pattern& pattern, std::string_view text) {
  std::string all;
  for (const PatternSpan& span : pattern.spans(text)) {
    const std::string part(text.substr(span.begin, span.end - span.begin));
    all += span.matched ? "[" + part + "]" : part;
  }
  return all;
}

std::string cut(std::string_view regex, std::string_view text) {
  return cut(Pattern::of_regex("t", regex), text);
}

TEST(Pattern, CutsATextAtItsMatches) {
  EXPECT_EQ(cut(Pattern::of_string("ab"), "xababy"), "x[ab][ab]y");
  EXPECT_EQ(cut(Pattern::of_string(""), "ab"), "ab");
  EXPECT_EQ(
      cut(Pattern::of_characters([](char32_t c) { return c == U'é'; }), "éaé"),
      "[é]a[é]");
  EXPECT_EQ(cut("a+", "baac"), "b[aa]c");
  EXPECT_TRUE(Pattern::of_regex("t", "a*").spans("").front().matched);
  EXPECT_EQ(cut("b*", "abba"), "[]a[bb]a[]");
}

TEST(Pattern, ReadsOniguruma) {
  EXPECT_EQ(cut(R"(\s)", "a\u00a0b\u180ec\u0085"), "a[\u00a0]b\u180ec[\u0085]");
  EXPECT_EQ(cut(R"([^\s[.,]]+)", "a. b,c"), "[a]. [b],[c]");
  EXPECT_EQ(cut(R"([\u00e9-\x{ea}])", "eéê"), "e[é][ê]");
  EXPECT_EQ(cut("(?i:'s)", "'S'\u017f"), "['S]['\u017f]");
  // a letter and an emoji of Unicode 15
  EXPECT_EQ(cut(R"(\p{L})", "\U00031350\U0001FAE8"), "[\U00031350]\U0001FAE8");
  EXPECT_EQ(cut(R"([\p{S}])", "\U00031350\U0001FAE8"),
            "\U00031350[\U0001FAE8]");
  // a line begins after every line end
  EXPECT_EQ(cut("^a", "a\na"), "[a]\n[a]");
}

TEST(Pattern, RefusesWhatTheTwoSyntaxesReadDifferently) {
  for (const char* regex :
       {R"(\b)",        R"(\h)",        R"(\w)",   R"(\K)",       R"(a\1)",
        "[a&&b]",       "[a[^b]]",      R"([\S])", "[[:alpha:]]", "[]a]",
        "a{1,2}+",      "a{,2}",        "(?<n>a)", "(*UTF)a",     "a(?i)b",
        R"(\p{Alnum})", R"(\p{L)",      "[a",      R"(a\)",       "(a",
        R"(\u12)",      R"(\x{110000})"})
    EXPECT_TRUE(test::says(test::message_of<InputError>(
                               [&] { Pattern::of_regex("t.json", regex); }),
                           {"t.json: ", "regular expression"}))
        << regex;
}

}  // namespace pattern_test
}  // namespace lipscope
