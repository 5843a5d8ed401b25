#include "lipscope/audit/radius.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope::audit {
namespace radius_test {

TEST(Radius, IsANumberOrOneOfTwoWords) {
  EXPECT_EQ(parse_radius("2.5", "--radius"), Radius::number(2.5));
  EXPECT_EQ(parse_radius("ln", "--radius"), Radius::norm_layer());
  EXPECT_EQ(parse_radius("everywhere", "--radius"), Radius::everywhere());
  EXPECT_FALSE(Radius::number(1.0) == Radius::number(2.0));
}

TEST(Radius, IsWrittenAsItIsRead) {
  for (const char* word : {"2.5", "1e-300", "ln", "everywhere"})
    EXPECT_EQ(name_of(parse_radius(word, "--radius")), word);
  EXPECT_EQ(to_json(Radius::number(2)).dump(), "2.0");
  EXPECT_EQ(to_json(Radius::norm_layer()).dump(), "\"ln\"");
  EXPECT_EQ(to_json(Radius::everywhere()).dump(), "\"everywhere\"");
}

TEST(Radius, IsFiniteAndAboveZero) {
  for (const char* word : {"0", "-1", "inf", "nan", "1e999", "x", "", "2 "})
    EXPECT_TRUE(test::says(
        test::message_of<InputError>([&] { parse_radius(word, "--radius"); }),
        {"--radius", word, "above 0"}))
        << word;
  EXPECT_THROW(Radius::number(0.0), std::invalid_argument);
  EXPECT_THROW(Radius::number(INFINITY), std::invalid_argument);
}

}  // namespace radius_test
}  // namespace lipscope::audit
