#include "lipscope/io/number_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace number_format_test {

double number(NumberFormat format, std::uint16_t bits) {
  return number_at(std::as_bytes(std::span(&bits, 1)), format, 0);
}

TEST(NumberFormat, IsReadByTheNameThatItPrints) {
  for (const NumberFormat format : {NumberFormat::f16, NumberFormat::bf16,
                                    NumberFormat::f32, NumberFormat::f64})
    EXPECT_EQ(parse_number_format(name_of(format), "--dtype"), format);
  EXPECT_EQ(name_of(NumberFormat::bf16), "bf16");
  for (const char* word : {"", "F32", "f8", "double"})
    EXPECT_TRUE(test::says(test::message_of<InputError>(
                               [&] { parse_number_format(word, "--dtype"); }),
                           {"--dtype", word, "bf16"}));
}

TEST(NumberFormat, WidensEveryHalfToItsDefinition) {
  // IEEE 754: (-1)^s 2^(e-15) (1 + f/1024), and 2^-14 f/1024 for e = 0
  for (int bits = 0; bits < 0x10000; ++bits) {
    const int e = bits >> 10 & 31, f = bits & 1023;
    const double x = number(NumberFormat::f16, bits);
    ASSERT_EQ(std::signbit(x) && !std::isnan(x), bits >> 15 && !std::isnan(x));
    if (e == 31)
      ASSERT_TRUE(f == 0 ? std::isinf(x) : std::isnan(x)) << bits;
    else
      ASSERT_EQ(std::abs(x),
                e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25))
          << bits;
  }
}

TEST(NumberFormat, KnowsHalvesByHeart) {
  EXPECT_EQ(number(NumberFormat::f16, 0x3c00), 1.0);
  EXPECT_EQ(number(NumberFormat::f16, 0xc000), -2.0);
  EXPECT_EQ(number(NumberFormat::f16, 0x7bff), 65504.0);
  EXPECT_EQ(number(NumberFormat::f16, 0x3555), 0.333251953125);
  EXPECT_EQ(number(NumberFormat::f16, 0x0001), 0x1p-24);
}

TEST(NumberFormat, TakesABfloatForTheUpperHalfOfAFloat) {
  EXPECT_EQ(number(NumberFormat::bf16, 0x3f80), 1.0);
  EXPECT_EQ(number(NumberFormat::bf16, 0xc049), -3.140625);
  EXPECT_EQ(number(NumberFormat::bf16, 0x0001), 0x1p-133);
  EXPECT_TRUE(std::isinf(number(NumberFormat::bf16, 0x7f80)));
}

TEST(NumberFormat, DecodesRowByRowFromAnyAddress) {
  // one byte in front puts every number at an odd address
  const std::string stored = std::string("x") + test::bytes_of(1.5) +
                             test::bytes_of(-2.5) + test::bytes_of(1e300) +
                             test::bytes_of(4.0);
  const auto bytes = std::as_bytes(std::span(stored)).subspan(1);
  const Matrix expected{{1.5, -2.5}, {1e300, 4.0}};
  EXPECT_EQ(decode<double>(bytes, NumberFormat::f64, 2, 2), expected);
  EXPECT_EQ(decode<float>(bytes, NumberFormat::f64, 2, 2)(0, 1), -2.5f);
  EXPECT_TRUE(std::isinf(decode<float>(bytes, NumberFormat::f64, 2, 2)(1, 0)));
}

TEST(NumberFormat, DecodeRefusesBytesThatDoNotFitTheShape) {
  const std::string stored(15, '\0');
  EXPECT_THROW(
      decode<double>(std::as_bytes(std::span(stored)), NumberFormat::f64, 1, 2),
      std::invalid_argument);
}

TEST(FirstNonFinite, IsTheFirstInRowOrder) {
  Matrix m = Matrix::Zero(3, 4);
  EXPECT_EQ(first_non_finite(m), std::nullopt);
  m(2, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(first_non_finite(m), 9);
  m(1, 3) = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(first_non_finite(m), 7);
  EXPECT_EQ(first_non_finite(Matrix(0, 3)), std::nullopt);
}

}  // namespace number_format_test
}  // namespace lipscope
