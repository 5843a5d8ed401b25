#include "lipscope/spectral/power_iteration.h"

#include <gtest/gtest.h>

#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/spectral/golub_kahan.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace power_iteration_test {

using test::DenseOperator;
using test::DiagonalOperator;

TEST(PowerIteration, FindsTheLargestSingularValue) {
  Vector s = Vector::LinSpaced(30, 0.8, 0.0);
  s[0] = 1.5;
  const DenseOperator<double> a(test::with_singular_values(40, 30, s));
  const NormEstimate e = power_iteration(a, {.tolerance = 1e-10});
  EXPECT_TRUE(e.converged);
  EXPECT_NEAR(e.value, 1.5, 1e-12);
  EXPECT_NEAR(a.apply(e.direction).norm(), e.value, 1e-13);
  EXPECT_EQ(e.upper_factor, std::numeric_limits<double>::infinity());
}

TEST(PowerIteration, AgreesWithGolubKahanAndTakesMoreSteps) {
  const DiagonalOperator<float> a(Vector::LinSpaced(200, 1.0, 0.0));
  const NormEstimate power = power_iteration(a, {.max_steps = 5000});
  const NormEstimate lanczos = golub_kahan(a);
  EXPECT_NEAR(power.value, lanczos.value, 1e-5);
  EXPECT_GT(power.steps, 2 * lanczos.steps);
}

TEST(PowerIteration, NeverBeatsGolubKahanFromTheSameStart) {
  const DiagonalOperator<double> a(Vector::LinSpaced(100, 1.0, 0.0));
  const Vector start = random_direction(100, Rng(4));
  for (int m = 1; m <= 10; ++m) {
    const NormEstimate power =
        power_iteration(a, {.tolerance = 0.0, .max_steps = m, .seed = 4});
    const NormEstimate lanczos =
        golub_kahan(a, {.tolerance = 0.0, .max_steps = m, .start = start});
    EXPECT_LE(power.value, lanczos.value * (1 + 1e-14)) << m << " steps";
    EXPECT_EQ(power.steps, m);
    EXPECT_FALSE(power.converged);
  }
}

TEST(PowerIteration, OfTheZeroOperatorIsZero) {
  const NormEstimate e =
      power_iteration(DiagonalOperator<double>(Vector::Zero(5)));
  EXPECT_EQ(e.value, 0.0);
  EXPECT_TRUE(e.converged);
}

TEST(PowerIteration, NeverReturnsWhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(
      power_iteration(DiagonalOperator<double>(Vector::Constant(5, nan))),
      RunError);
}

}  // namespace power_iteration_test
}  // namespace lipscope
