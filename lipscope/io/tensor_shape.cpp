#include "lipscope/io/tensor_shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace lipscope {

std::optional<std::uint64_t> storage_size(const TensorShape& shape,
                                          std::uint64_t unit) {
  // in whatever place the zero stands, the product is zero and does not wrap
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t size = unit;
  for (const Index length : shape)
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(length), &size))
      return std::nullopt;
  return size;
}

std::string to_string(const TensorShape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace lipscope
