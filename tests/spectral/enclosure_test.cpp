#include "lipscope/spectral/enclosure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace lipscope {
namespace enclosure_test {

TEST(StartOverlap, IsTheFormulaWorkedByHand) {
  // 0.97 · 1.2533141 · 0.01 / 20
  EXPECT_NEAR(start_overlap(20.0, 0.01), 6.0785735e-4, 1e-10);
  // no start has more of z than all of itself
  EXPECT_EQ(start_overlap(0.5, 0.9), 1.0);
}

TEST(EnclosureFactor, IsTheFormulaWorkedByHand) {
  // acosh(65/16) = ln 8: cosh(ln 8) after one step, cosh(ln 2) after two
  EXPECT_NEAR(enclosure_factor(16.0 / 65.0, 1), 65.0 / 16.0, 1e-13);
  EXPECT_NEAR(enclosure_factor(16.0 / 65.0, 2), 5.0 / 4.0, 1e-14);
  EXPECT_EQ(enclosure_factor(1.0, 1), 1.0);
  // 32 tokens of width 768
  const double overlap = start_overlap(std::sqrt(24576.0), 1e-10);
  EXPECT_NEAR(enclosure_factor(overlap, 12), 1.88, 0.005);
  EXPECT_NEAR(enclosure_factor(overlap, 15), 1.53, 0.005);
  EXPECT_NEAR(enclosure_factor(overlap, 30), 1.12, 0.005);
}

TEST(EnclosureFactor, IsBelowTheFormThatWasPublished) {
  // 1/√(1−ε), √ε = ln(1.648 √N / δ)/(2m−1), of Kuczyński and Woźniakowski
  for (const double unknowns : {1e2, 24576.0, 1e7})
    for (const double delta : {0.1, 1e-10})
      for (const int steps : {12, 20, 39, 100}) {
        const double root =
            std::log(1.648 * std::sqrt(unknowns) / delta) / (2.0 * steps - 1.0);
        if (root >= 1.0) continue;
        EXPECT_LT(
            enclosure_factor(start_overlap(std::sqrt(unknowns), delta), steps),
            1.0 / std::sqrt(1.0 - root * root));
      }
}

TEST(StepsToEnclose, AreTheFewest) {
  for (const double factor : {1.001, 1.05, 1.5, 10.0})
    for (const double unknowns : {1e3, 24576.0, 1e6}) {
      const double overlap = start_overlap(std::sqrt(unknowns), 1e-10);
      const int m = steps_to_enclose(overlap, factor);
      EXPECT_LE(enclosure_factor(overlap, m), factor);
      EXPECT_GT(enclosure_factor(overlap, m - 1), factor);
    }
  EXPECT_EQ(steps_to_enclose(1.0, 1.01), 1);
}

TEST(Enclosure, RefusesWhatMeansNothing) {
  EXPECT_THROW(start_overlap(0.0, 0.1), std::invalid_argument);
  EXPECT_THROW(start_overlap(1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(enclosure_factor(0.0, 3), std::invalid_argument);
  EXPECT_THROW(enclosure_factor(0.5, 0), std::invalid_argument);
  EXPECT_THROW(steps_to_enclose(0.5, 1.0), std::invalid_argument);
}

}  // namespace enclosure_test
}  // namespace lipscope
