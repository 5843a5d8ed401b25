#include "lipscope/spectral/shift_direction.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace shift_direction_test {

TEST(ShiftDirection, DoesNotDependOnTheRandomNumbersOfASearch) {
  // every shift is stretched alike, so that the one found is where the search
  // for it began. Were that the start of a search with the same seed (its first
  // d numbers, where the profile has one entry for each token), the hint of an
  // enclosure would depend on what it is added to.
  const Index d = 50;
  const CommonShift<double> shift{
      std::make_unique<test::DiagonalOperator<double>>(Vector::Ones(d)),
      Vector::Ones(1)};
  const Vector u = shift_direction(shift, 1);
  ASSERT_EQ(u.size(), d);
  EXPECT_NEAR(u.norm(), 1.0, 1e-12);
  for (const std::uint64_t seed : {0, 1, 2})
    EXPECT_LT(std::abs(u.dot(random_direction(d, Rng(seed).split(0)))), 0.6)
        << "seed " << seed;
}

}  // namespace shift_direction_test
}  // namespace lipscope
