#include "lipscope/experiments/generated_text.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace lipscope {
namespace generated_text_test {

TEST(GeneratedText, IsTheSameForTheSameSeedAndGrowsAtItsEnd) {
  const std::string text = generated_text(5000, 3);
  EXPECT_EQ(text.size(), 5000u);
  EXPECT_EQ(generated_text(5000, 3), text);
  EXPECT_EQ(generated_text(800, 3), text.substr(0, 800));
  EXPECT_NE(generated_text(5000, 4), text);
}

// "the kings that one wolf fears call": the verb is that of the kings
TEST(GeneratedText, HasVerbsThatAgreeAcrossAClause) {
  const std::string text = generated_text(200'000);
  const std::regex over(
      "(The|One) (\\w+ )?(king|wolf|child|kings|wolves|children) that (the|one)"
      " (\\w+ )?(king|wolf|child|kings|wolves|children) (?!that)(\\w+) "
      "(\\w+) ");
  const std::set<std::string> one = {"king", "wolf", "child"};
  int seen = 0;
  for (std::sregex_iterator m(text.begin(), text.end(), over), end; m != end;
       ++m) {
    ++seen;
    EXPECT_EQ(m->str(8).back() == 's', one.contains(m->str(3))) << m->str();
    EXPECT_EQ(m->str(7).back() == 's', one.contains(m->str(6))) << m->str();
  }
  EXPECT_GT(seen, 10);
}

}  // namespace generated_text_test
}  // namespace lipscope
