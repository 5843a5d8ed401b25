#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lipscope/io/tensor_shape.h"

namespace lipscope {

/// What the header of a safetensors file says of one tensor.
struct StoredTensor {
  std::string dtype;
  TensorShape shape;
  std::uint64_t begin = 0;  ///< first byte, counted from the end of the header
  std::uint64_t end = 0;    ///< one past the last
};

/// By name; can be looked up by string_view.
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

/// The tensors of a header that is followed by `data_size` bytes of data.
///
/// Afterwards every tensor lies within the data, takes the bytes its shape and
/// dtype ask for (dtypes this program has never heard of are not held to that),
/// and the tensors cover the data once, without overlap or hole. Anything else
/// is an InputError, as is JSON with a key twice, which readers would disagree
/// about.
StoredTensors parse_safetensors_header(const std::filesystem::path& path,
                                       std::string_view header,
                                       std::uint64_t data_size);

}  // namespace lipscope
