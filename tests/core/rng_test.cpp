#include "lipscope/core/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lipscope {
namespace rng_test {

TEST(Rng, GivesTheSameNumbersOnEveryMachine) {
  // worked out with an independent implementation of SplitMix64 seeding and
  // xoshiro256++ in another language
  Rng rng(42);
  EXPECT_EQ(rng.next(), 15021278609987233951u);
  EXPECT_EQ(rng.next(), 5881210131331364753u);
  EXPECT_EQ(rng.next(), 18149643915985481100u);
}

TEST(Rng, SplitDependsOnSeedAndStreamAlone) {
  Rng fresh(7), used(7);
  for (int i = 0; i < 100; ++i) used.next();
  EXPECT_EQ(fresh.split(3).next(), used.split(3).next());
  EXPECT_NE(fresh.split(3).next(), fresh.split(4).next());
  EXPECT_NE(fresh.split(3).next(), Rng(8).split(3).next());
}

TEST(Rng, NormalsHaveTheMomentsOfTheNormal) {
  Rng rng(1);
  const int count = 400000;
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < count; ++i) {
    const double z = rng.normal();
    m1 += z, m2 += z * z, m4 += z * z * z * z;
  }
  // four standard errors of each moment: variances 1, 2 and 96
  EXPECT_NEAR(m1 / count, 0.0, 4 * std::sqrt(1.0 / count));
  EXPECT_NEAR(m2 / count, 1.0, 4 * std::sqrt(2.0 / count));
  EXPECT_NEAR(m4 / count, 3.0, 4 * std::sqrt(96.0 / count));
}

TEST(Rng, UniformsFillTheUnitInterval) {
  Rng rng(2);
  double lowest = 1, highest = 0, sum = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    lowest = std::min(lowest, u), highest = std::max(highest, u), sum += u;
  }
  EXPECT_LT(lowest, 1e-3);
  EXPECT_GT(highest, 1 - 1e-3);
  EXPECT_NEAR(sum / count, 0.5, 4 * std::sqrt(1.0 / 12 / count));
}

TEST(RandomDirection, HasLengthOne) {
  EXPECT_NEAR(random_direction(1000, Rng(3)).norm(), 1.0, 1e-14);
}

}  // namespace rng_test
}  // namespace lipscope
