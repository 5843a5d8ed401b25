#include "lipscope/io/tensor_shape.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace tensor_shape_test {

TEST(TensorShape, TakesTheProductOfItsLengths) {
  EXPECT_EQ(storage_size({3, 4}, 8), 96u);
  EXPECT_EQ(storage_size({}, 8), 8u);
  EXPECT_EQ(storage_size({5, 0}, 8), 0u);
  EXPECT_EQ(storage_size({Index{1} << 62, Index{1} << 62, 0}, 8), 0u);
}

TEST(TensorShape, TakesNothingRatherThanAProductThatWrapsAround) {
  const Index half = Index{1} << 32;
  EXPECT_EQ(storage_size({half, half}, 1), std::nullopt);
  EXPECT_EQ(storage_size({half, half / 2}, 1), std::uint64_t{1} << 63);
  EXPECT_EQ(storage_size({half, half / 2}, 2), std::nullopt);
}

TEST(TensorShape, IsShownAsAList) {
  EXPECT_EQ(to_string(TensorShape{2, 3}), "[2, 3]");
  EXPECT_EQ(to_string(TensorShape{}), "[]");
}

}  // namespace tensor_shape_test
}  // namespace lipscope
