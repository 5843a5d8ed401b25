// Sigmoid attention.

#include "lipscope/theory/ramapuram24.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace ramapuram24_test {

using test::bound_value;
using test::expect_close;
using test::one_by_one;
using test::scalar;

TEST(Ramapuram24, BoundsWorkedByHand) {
  // A = 6, V = 5, R = ½, n = 3: logits to 1.5 ≥ ln 3, so sup σ' = ¼
  const auto sigma = [](double t) { return 1 / (1 + std::exp(-t)); };
  AttentionWeights w = one_by_one(2, 3, 5);
  BoundSetting q{.kind = Kind::sigmoid, .n = 3, .radius = 0.5};
  expect_close(bound_value(w, q, "ramapuram24_ball"),
               3 * 5 * (sigma(1.5 - std::log(3.0)) + 2 * 6 * 0.25 * 0.25));
  // R = 0.1: logits to 0.06 < ln 3
  q.radius = 0.1;
  const double s = sigma(0.06 - std::log(3.0));
  EXPECT_NEAR(bound_value(w, q, "ramapuram24_ball"),
              3 * 5 * (s + 2 * 0.06 * s * (1 - s)), 1e-9);
  // b_Q = 1, b_K = 2, b_V = 4: c = 3, c' = 4, b_Q b_K = 2:
  // logits to 0.06 + 0.7 + 2; (2·6·0.1 + 7)(5·0.1 + 4)/4
  w.query_bias = Vector::Constant(1, 1.0);
  w.key_bias = Vector::Constant(1, 2.0);
  w.value_bias = Vector::Constant(1, 4.0);
  EXPECT_NEAR(bound_value(w, q, "ramapuram24_ball"),
              3 * (5 * sigma(2.76 - std::log(3.0)) + 8.2 * 4.5 / 4), 1e-9);
  w.output = scalar(2);
  EXPECT_NEAR(bound_value(w, q, "ramapuram24_ball"),
              6 * (5 * sigma(2.76 - std::log(3.0)) + 8.2 * 4.5 / 4), 1e-9);
}

}  // namespace ramapuram24_test
}  // namespace lipscope
