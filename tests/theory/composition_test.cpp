// How constants compose.

#include "lipscope/theory/composition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/theory/mlp_bound.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace composition_test {

using test::expect_close;

TEST(Composition, OfBlocks) {
  expect_close(mlp_bound(2, 3, Activation::relu).value(), 6);
  EXPECT_NEAR(mlp_bound(1, 1, Activation::gelu).value(), 1.128904, 1e-4);
  EXPECT_NEAR(mlp_bound(1, 1, Activation::silu).value(), 1.099839, 1e-4);
  EXPECT_GT(activation_slope(Activation::gelu), 1.12899307);  // tanh form
  EXPECT_GT(activation_slope(Activation::silu), 1.09983933);
  const BlockParts parts{
      .attention = 2.0, .attention_norm = 3.0, .mlp = 5.0, .mlp_norm = 7.0};
  expect_close(pre_norm_block(parts).value(), 7.0 * 36.0);
  expect_close(post_norm_block(parts).value(), 3 * 3.0 * 7 * 6);
  // products over layers leave double, and their logarithm does not
  Magnitude model = 1.0;
  for (int layer = 0; layer < 200; ++layer)
    model = model * pre_norm_block(parts);
  EXPECT_TRUE(std::isinf(model.value()));
  EXPECT_NEAR(model.log10(), 200 * std::log10(252.0), 1e-9);
}

}  // namespace composition_test
}  // namespace lipscope
