// Characters that Unicode 15 assigned, as tokenizers 0.23.3 knows them: newer
// than some of its parts, and known to some versions of utf8proc only.

#include "lipscope/text/character_class.h"

#include <gtest/gtest.h>

#include "lipscope/text/normal_forms.h"

namespace lipscope {
namespace character_class_test {

TEST(CharacterClass, IsThatOfHuggingFaceInUnicode15) {
  const char32_t ideograph = 0x31394, digit = 0x1e4f0, mark = 0x1e4ec,
                 danda = 0x11f43;
  EXPECT_TRUE(is_word_character(ideograph));
  EXPECT_TRUE(is_word_character(digit));
  EXPECT_TRUE(is_word_character(mark));
  EXPECT_FALSE(is_word_character(danda));
  EXPECT_TRUE(is_numeric(digit));
  EXPECT_FALSE(is_numeric(ideograph));
  // of these parts it has older tables
  EXPECT_FALSE(is_punctuation(danda));
  EXPECT_FALSE(is_bert_accent(mark));
  EXPECT_FALSE(is_combining_mark(mark));
  EXPECT_FALSE(changes_in_normal_forms(mark));
}

TEST(CharacterClass, OfMarksThatAreNewerDoesNotPutThemInOrder) {
  // U+1E4EC has the class 232 since Unicode 15, U+0345 the class 240
  const std::string text = "a\u0345\U0001e4ec";
  EXPECT_EQ(normal_form(SourcedText(text), NormalForm::nfd).text(), text);
  EXPECT_EQ(normal_form(SourcedText("a\u0345\u0316"), NormalForm::nfd).text(),
            "a\u0316\u0345");
}

}  // namespace character_class_test
}  // namespace lipscope
