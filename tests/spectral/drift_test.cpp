#include "lipscope/spectral/drift.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace drift_test {

using test::DenseOperator;

std::vector<double> bounds(const Matrix& seen, const Matrix& is,
                           const DriftOptions& options) {
  return Drift(DenseOperator<float>(seen.cast<float>()), options)
      .bounds(DenseOperator<double>(is));
}

TEST(Drift, IsTheFormulaWorkedByHand) {
  // E = I/4, so that ‖E ω‖ = ‖ω‖/4 is close to √n/4 for every probe; α √(2/π)
  // is 10⁶^{1/2} 0.79788 = 797.88 with two probes, 79.788 with three
  const Index n = 10000;
  const test::DiagonalOperator<float> seen(Vector::Zero(n));
  const test::DiagonalOperator<double> is(Vector::Constant(n, 0.25));
  for (const auto& [probes, factor] :
       {std::pair<int, double>(2, 797.88), {3, 79.788}}) {
    const double bound =
        Drift(seen, {.probes = probes, .delta = 1e-6}).bounds(is)[0];
    EXPECT_NEAR(bound, factor * 25.0, 0.02 * bound);
    EXPECT_GE(bound, 0.25);
  }
}

TEST(Drift, FailsNoMoreOftenThanStated) {
  // E of rank one, which a probe shows least of
  const Index n = 12;
  const Matrix z = test::orthonormal(n, 1, Rng(3));
  const Matrix e = z * z.transpose();
  for (const int probes : {1, 3}) {
    int failures = 0, failures_of_a_third = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      const double bound =
          bounds(Matrix::Zero(n, n), e,
                 {.probes = probes, .delta = 0.1, .seed = seed})
              .front();
      failures += bound < 1.0;
      failures_of_a_third += bound / 3 < 1.0;
    }
    EXPECT_LE(failures, 400);
    // the bound is not so generous that no test could find it wrong
    EXPECT_GT(failures_of_a_third, 400);
  }
}

TEST(Drift, BoundsEachPartByItself) {
  const Index n = 7;
  const Matrix is = gaussian(3 * n, 3 * n, Rng(1));
  Matrix exact = Matrix::Zero(3 * n, 3 * n), seen = exact;
  for (Index s = 0; s < 3; ++s) {
    exact.block(s * n, s * n, n, n) = is.block(s * n, s * n, n, n);
    seen.block(s * n, s * n, n, n) =
        is.block(s * n, s * n, n, n) * (1.0 + 1e-3 * double(s));
  }
  const std::vector<double> all = bounds(seen, exact, {.sequences = 3});
  EXPECT_GT(all[2], all[1]);
  EXPECT_GT(all[1], all[0]);
  // the products of f32 are rounded in another order
  for (Index s = 1; s < 3; ++s)
    EXPECT_NEAR(bounds(seen.block(s * n, s * n, n, n),
                       exact.block(s * n, s * n, n, n), {})[0],
                all[s], 2e-3 * all[s]);
}

TEST(ProbesFor, AreAsFewAsTheRoomAllows) {
  // 2e-5 · 0.798 (3e10)^{1/r}: 2.8, 0.0496, 0.0066, 0.0020, 0.00089
  EXPECT_EQ(probes_for(3.0, 1e-10 / 3), 2);
  EXPECT_EQ(probes_for(0.05, 1e-10 / 3), 3);
  EXPECT_EQ(probes_for(0.01, 1e-10 / 3), 4);
  EXPECT_EQ(probes_for(0.005, 1e-10 / 3), 5);
  EXPECT_EQ(probes_for(1e-9, 1e-10 / 3), 6);
}

TEST(Drift, RefusesOtherSizesAndWhatIsNotANumber) {
  const Matrix a = Matrix::Identity(4, 4);
  EXPECT_THROW(bounds(a, Matrix::Identity(5, 5), {}), std::invalid_argument);
  EXPECT_THROW(bounds(a, a, {.sequences = 3}), std::invalid_argument);
  EXPECT_THROW(bounds(a, a, {.probes = 0}), std::invalid_argument);
  EXPECT_THROW(bounds(a, a * std::numeric_limits<double>::infinity(), {}),
               RunError);
}

}  // namespace drift_test
}  // namespace lipscope
