#include "lipscope/transport/distance.h"

#include <gtest/gtest.h>

#include "tests/transport/measures.h"

namespace lipscope {
namespace distance_test {

TEST(ConditionalDistance, OfSequencesIsTheMeanSquareOfTheirMoves) {
  const Matrix x = gaussian(7, 3, Rng(1)), y = gaussian(7, 3, Rng(2));
  const Measure mu = uniform_measure(x, Mask::causal);
  const Measure nu = uniform_measure(y, Mask::causal);
  EXPECT_NEAR(distance(mu, nu).value, (x - y).norm() / std::sqrt(7.0), 1e-14);
  EXPECT_LE(distance(mu, nu).relative_gap, 1e-12);
  // without positions tokens may be matched otherwise, and here they are
  EXPECT_LT(
      distance(uniform_measure(x, Mask::none), uniform_measure(y, Mask::none))
          .value,
      0.99 * distance(mu, nu).value);
}

TEST(ConditionalDistance, MatchesTokensWithinAPositionOnly) {
  // masses 1/4, 1/4 at position 0 that change places, and 1/2 at 1 moved by 3
  const Vector mass{{0.25, 0.25, 0.5}}, at{{0.0, 0.0, 1.0}};
  const Measure mu = make_measure(Matrix{{0.0}, {5.0}, {5.0}}, mass, at);
  const Measure nu = make_measure(Matrix{{5.0}, {0.0}, {8.0}}, mass, at);
  EXPECT_NEAR(distance(mu, nu).value, std::sqrt(0.5 * 9.0), 1e-15);
}

TEST(ConditionalDistance, IsInfiniteBetweenDifferentPositions) {
  const Matrix x = gaussian(3, 2, Rng(3));
  const Vector mass{{0.25, 0.25, 0.5}};
  const Measure mu = make_measure(x, mass, Vector{{0.0, 0.0, 1.0}});
  EXPECT_EQ(distance(mu, make_measure(x, mass, Vector{{0.0, 0.0, 2.0}})).value,
            INFINITY);
  EXPECT_EQ(distance(mu, make_measure(x, Vector{{0.25, 0.35, 0.4}},
                                      Vector{{0.0, 0.0, 1.0}}))
                .value,
            INFINITY);
  EXPECT_EQ(distance(mu, make_measure(x, mass, Vector{{0.0, 1.0, 1.0}})).value,
            INFINITY);
  // the same masses at the same positions, otherwise shared out
  EXPECT_LT(distance(mu, make_measure(x, Vector{{0.1, 0.4, 0.5}},
                                      Vector{{0.0, 0.0, 1.0}}))
                .value,
            INFINITY);
  EXPECT_EQ(distance(mu, split_evenly(mu, 2)).value, 0.0);
  EXPECT_THROW(distance(mu, make_measure(x, mass)), std::invalid_argument);
}

TEST(ConditionalDistance, IsNeverBelowTheOneThatForgetsPositions) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Vector mass = test::random_masses(6, seed);
    const Matrix x = gaussian(6, 2, Rng(seed).split(0));
    const Matrix y = gaussian(6, 2, Rng(seed).split(1));
    const Vector at = test::paired_positions(6);
    EXPECT_GE(
        distance(make_measure(x, mass, at), make_measure(y, mass, at)).value *
            (1 + 1e-14),
        distance(make_measure(x, mass), make_measure(y, mass)).value);
  }
}

}  // namespace distance_test
}  // namespace lipscope
