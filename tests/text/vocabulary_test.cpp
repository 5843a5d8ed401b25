#include "lipscope/text/vocabulary.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/text/tokenizer.h"

namespace lipscope::test {
namespace vocabulary_test {

TEST(Vocabulary, CountsCharactersAndSaysWhereTheyStand) {
  const Vocabulary v = Vocabulary::of("caf\u00e9 face");
  EXPECT_EQ(v.size(), 6);  // blank a c e f é
  const std::vector<Token> tokens = v.encode("\u00e9a");
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0], (Token{.id = 5, .begin = 0, .end = 2}));
  EXPECT_EQ(tokens[1], (Token{.id = 1, .begin = 2, .end = 3}));
  EXPECT_EQ(v.decode(std::vector<TokenId>{5, 1}), "\u00e9a");
  EXPECT_EQ(Tokenizer(v).piece(5), "\u00e9");
}

TEST(Vocabulary, SaysWhatItDoesNotKnow) {
  const Vocabulary v = Vocabulary::of("abc");
  const auto message = [&](const std::string& text) -> std::string {
    try {
      v.encode(text, "file");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("abz"),
            "file: byte 2: the model does not know the character U+007A");
  EXPECT_NE(message("ab\xff").find("file: "), std::string::npos);
}

TEST(Vocabulary, ComesFromAConfiguration) {
  EXPECT_EQ(parse_vocabulary("c", R"({"characters": [32, 97]})").characters(),
            (std::vector<char32_t>{32, 97}));
  for (const char* wrong :
       {R"({})", R"([])", R"({"characters": 3})", R"({"characters": [97, 32]})",
        R"({"characters": [97, 97]})", R"({"characters": [-1]})",
        R"({"characters": [1114112]})", R"({"characters": [55296]})",
        R"({"characters": ["a"]})", R"({"characters": [97.5]})"})
    EXPECT_THROW(parse_vocabulary("c", wrong), InputError) << wrong;
}

}  // namespace vocabulary_test
}  // namespace lipscope::test
