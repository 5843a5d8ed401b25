#include "lipscope/report/median.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace lipscope {
namespace median_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Median, IsTheMiddleOneOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({5.0, 1.0}), 3.0);
  EXPECT_EQ(median({5.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({8.0, 1.0, 2.0, 5.0}), 3.5);
}

TEST(Median, CountsInfiniteValuesAndDoesNotOverflow) {
  EXPECT_EQ(median({1.0, infinity, 2.0}), 2.0);
  EXPECT_EQ(median({1.0, infinity}), infinity);
  EXPECT_EQ(median({1.0, -infinity}), -infinity);
  EXPECT_EQ(median({-infinity, infinity}), infinity);
  EXPECT_EQ(median({infinity, infinity}), infinity);
  EXPECT_EQ(median({1.7e308, 1.7e308, 1e308, 1.7e308}), 1.7e308);
}

TEST(Median, OfLogarithmsIsThatOfTheirNumbers) {
  // (1 + 3)/2 = 2, not the root of 1·3
  EXPECT_NEAR(median_log10({std::log10(3.0), 0.0}), std::log10(2.0), 1e-15);
  EXPECT_NEAR(median_log10({0.0, 5.0, std::log10(3.0), -7.0}), std::log10(2.0),
              1e-15);
  EXPECT_EQ(median_log10({-2.0, 1.0, 7.0}), 1.0);
  // beyond double: half of 10^400 and of nearly nothing
  EXPECT_NEAR(median_log10({400.0, -400.0}), 400.0 - std::log10(2.0), 1e-12);
  // of 0 and 1, a half; of a number and of what was not found, not found
  EXPECT_NEAR(median_log10({-infinity, 0.0}), std::log10(0.5), 1e-15);
  EXPECT_EQ(median_log10({-infinity, -infinity}), -infinity);
  EXPECT_EQ(median_log10({1.0, infinity}), infinity);
}

TEST(Median, OfNothingIsRefused) {
  EXPECT_THROW(median({}), std::invalid_argument);
  EXPECT_THROW(median({1.0, std::nan("")}), std::invalid_argument);
  EXPECT_THROW(median_log10({}), std::invalid_argument);
}

}  // namespace median_test
}  // namespace lipscope
