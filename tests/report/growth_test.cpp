#include "lipscope/report/growth.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lipscope {
namespace growth_test {

TEST(FitGrowth, RecoversAPowerLaw) {
  std::vector<GrowthPoint> points;
  for (const Index n : {2, 4, 8, 64})
    points.push_back({n, 3.0 * std::pow(n, 0.25), 1.0});
  const GrowthFit fit = fit_growth(points).value();
  EXPECT_EQ(fit.points, 4);
  EXPECT_NEAR(fit.exponent, 0.25, 1e-12);
  EXPECT_NEAR(fit.constant, 3.0, 1e-12);
  EXPECT_NEAR(fit.high - fit.low, 0.0, 1e-6);
  EXPECT_NEAR(fit.r_squared, 1.0, 1e-12);
  EXPECT_FALSE(fit.radius_correlation.has_value());
}

// ln n = 0, 1, 2, 3 times ln 2 and ln value = 1, 2, 2, 4 times ln 2: the slope
// is (Σ xy − 4·1.5·2.25)/(Σ x² − 4·1.5²) = (18 − 13.5)/(14 − 9) = 0.9, the
// residuals are 0.1, 0.2, −0.7, 0.4, their squares sum to 0.70, so that the
// slope's deviation is √(0.70/2/5) = 0.264575; Student's 97.5 % quantile with
// two degrees of freedom is 4.302653.
TEST(FitGrowth, IsTheRegressionWorkedByHand) {
  const std::vector<GrowthPoint> points = {
      {1, 2.0, 1.0}, {2, 4.0, 2.0}, {4, 4.0, 4.0}, {8, 16.0, 8.0}};
  const GrowthFit fit = fit_growth(points).value();
  EXPECT_NEAR(fit.exponent, 0.9, 1e-12);
  EXPECT_NEAR(fit.low, 0.9 - 4.302653 * 0.264575, 1e-5);
  EXPECT_NEAR(fit.high, 0.9 + 4.302653 * 0.264575, 1e-5);
  EXPECT_NEAR(fit.constant, std::pow(2.0, 2.25 - 0.9 * 1.5), 1e-12);
  // Σ (y − 2.25)² = 4.75
  EXPECT_NEAR(fit.r_squared, 1 - 0.70 / 4.75, 1e-12);
  // radius = n, so that its correlation is that of the fit
  EXPECT_NEAR(fit.radius_correlation.value(), std::sqrt(1 - 0.70 / 4.75),
              1e-12);
}

TEST(FitGrowth, SaysNothingWhereThereIsNothingToFit) {
  EXPECT_FALSE(fit_growth({}).has_value());
  EXPECT_FALSE(fit_growth({{2, 1.0, 1.0}, {4, 2.0, 1.0}}).has_value());
  EXPECT_FALSE(
      fit_growth({{8, 1.0, 1.0}, {8, 2.0, 1.0}, {8, 3.0, 1.0}}).has_value());
  // a zero has no logarithm
  EXPECT_FALSE(
      fit_growth({{2, 1.0, 1.0}, {4, 2.0, 1.0}, {8, 3.0, 1.0}, {16, 0.0, 1.0}})
          .has_value());
}

// however often three lengths were measured, a power of n is no news
TEST(FitGrowth, NeedsFourLengths) {
  std::vector<GrowthPoint> points;
  for (int sample = 0; sample < 10; ++sample)
    for (const Index n : {2, 4, 8})
      points.push_back({n, 1.0 + n + sample, 1.0});
  EXPECT_FALSE(fit_growth(points).has_value());
  points.push_back({16, 20.0, 1.0});
  EXPECT_TRUE(fit_growth(points).has_value());
}

}  // namespace growth_test
}  // namespace lipscope
