// Cosine attention.

#include "lipscope/theory/qi23.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace qi23_test {

using test::bound_value;
using test::expect_close;
using test::one_by_one;
using test::scalar;

TEST(Qi23, BoundsWorkedByHand) {
  // ‖W_Q‖, ‖W_K‖, ‖W_V‖ = 2, 3, 5; τ = 7, ν = 11, ε = ¼; n = 3; W_O = 2
  AttentionWeights w = one_by_one(2, 3, 5);
  w.output = scalar(2);
  BoundSetting q{.kind = Kind::cosine, .n = 3};
  q.cosine = {.tau = 7, .nu = 11, .epsilon = 0.25};
  expect_close(bound_value(w, q, "qi23_cosine"),
               2 * 22.0 * (9 * 7 * 3 + 3 * 7 * 2 + 2 * 3 * 5));
  expect_close(
      bound_value(w, q, "cosine_column_sums"),
      2 * 22 *
          (7 * 2 + std::sqrt(3 / (1 + 2 * std::exp(-14.0))) * (7 * 3 + 5)));
}

}  // namespace qi23_test
}  // namespace lipscope
