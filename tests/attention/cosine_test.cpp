// Cosine attention: the values that the theory gives by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/attention/one_by_one.h"

namespace lipscope {
namespace cosine_test {

using test::column;
using test::jacobian;
using test::one_by_one;

TEST(Cosine, OfOneTokenIsItsNormalisedValue) {
  // d(ν z/√(z² + ε)) = ν ε/(z² + ε)^{3/2} at z = v x: v = 2, x = 3, ε = 64
  AttentionOptions options{.kind = Kind::cosine};
  options.cosine = {.tau = 10, .nu = 5, .epsilon = 64};
  const Matrix J = jacobian(one_by_one(1, 1, 2), options, column({3}));
  EXPECT_NEAR(J(0, 0), 2 * 5 * 64 / 1000.0, 1e-14);
}

}  // namespace cosine_test
}  // namespace lipscope
