#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// The lengths of an array along its axes, slowest axis first; none negative.
using TensorShape = std::vector<Index>;

/// How many units of `unit` bits or bytes the entries of an array of this shape
/// take. Nothing if that does not fit into 64 bits: shapes come from files, and
/// a product that wraps around would let a file claim memory it has not got.
std::optional<std::uint64_t> storage_size(const TensorShape& shape,
                                          std::uint64_t unit);

/// For messages: "[2, 3]".
std::string to_string(const TensorShape& shape);

}  // namespace lipscope
