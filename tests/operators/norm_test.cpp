#include "lipscope/operators/norm.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace norm_test {

TEST(Norm, IsReadByTheNameThatItPrints) {
  for (const Norm norm : {Norm::two, Norm::inf, Norm::token})
    EXPECT_EQ(parse_norm(name_of(norm), "--norm"), norm);
  EXPECT_EQ(name_of(Norm::two), "2");
  EXPECT_EQ(name_of(Norm::w2), "w2");
  EXPECT_EQ(name_of(Norm::d2), "d2");
}

TEST(Norm, OfMeasuresIsNotForThePersonToChoose) {
  for (const char* word : {"w2", "d2", "", "two", "INF"})
    EXPECT_TRUE(test::says(
        test::message_of<InputError>([&] { parse_norm(word, "--norm"); }),
        {"--norm", word, "2, inf or token"}));
}

}  // namespace norm_test
}  // namespace lipscope
