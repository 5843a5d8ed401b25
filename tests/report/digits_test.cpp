#include "lipscope/report/digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace digits_test {

TEST(SixDigits, AreRoundedToTheSideOfTheNumber) {
  EXPECT_EQ(six_digits(17.1756449), "17.1756");
  EXPECT_EQ(six_digits_above(17.1756449), "17.1757");
  EXPECT_EQ(six_digits_below(17.1756449), "17.1756");
  EXPECT_EQ(six_digits_above(17.1756951), "17.1757");
  EXPECT_EQ(six_digits_below(17.1756951), "17.1756");
  EXPECT_EQ(six_digits_above(9.999991), "10");
  EXPECT_EQ(six_digits_above(1.2345671e-9), "1.23457e-09");
  EXPECT_EQ(six_digits_above(1.2345671e+120), "1.23457e+120");
  EXPECT_EQ(six_digits_below(-1.2345671), "-1.23457");
  EXPECT_EQ(six_digits_above(-1.2345671), "-1.23456");
}

TEST(SixDigits, AreLeftAloneWhereTheyAreTheNumber) {
  for (const double x : {0.0, 1.0, 0.1, 0.25, 31.0, -2.5, 1e22, 123456e-3}) {
    EXPECT_EQ(six_digits_above(x), six_digits(x));
    EXPECT_EQ(six_digits_below(x), six_digits(x));
  }
  // rounding of a bound that is one
  EXPECT_EQ(six_digits_above(1 + 4e-12), "1");
  EXPECT_EQ(six_digits_below(1 - 4e-12), "1");
  EXPECT_EQ(six_digits_above(INFINITY), "inf");
}

TEST(SixDigits, EncloseTheNumber) {
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(20 * rng.normal()) * (i % 2 == 0 ? 1 : -1);
    const double slack = 1.001e-8 * std::abs(x);
    const double above = std::stod(six_digits_above(x));
    const double below = std::stod(six_digits_below(x));
    EXPECT_GE(above, x - slack) << x;
    EXPECT_LE(below, x + slack) << x;
    EXPECT_LE(above - below, 1.001e-5 * std::abs(x)) << x;
  }
}

}  // namespace digits_test
}  // namespace lipscope
