#pragma once

#include <cstddef>

/// What the kernels that are compiled for instructions of their own are given
/// (core/bf16_tiles.h, core/bf16_pairs.h): no templates, of which the linker
/// might keep such a file's copy for everybody.
namespace lipscope {

/// Rows of floats, `stride` apart; transposed: the factor is its transpose. The
/// numbers are borrowed for the call.
struct Floats {
  const float* data = nullptr;
  std::ptrdiff_t stride = 0;
  bool transposed = false;
};

}  // namespace lipscope
