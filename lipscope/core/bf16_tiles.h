#pragma once

#include <cstddef>
#include <cstdint>

#include "lipscope/core/floats.h"

/// Products of f32 matrices from products of bf16 tiles, on CPUs that multiply
/// such tiles by themselves (Intel's AMX, sixteen times as many operations a
/// cycle as f32 vectors). A number is cut into parts of eight bits each, which
/// bf16 holds exactly,
///
///   x = x₁ + x₂ + x₃,   |x₂| < 2⁻⁷|x|,  |x₃| < 2⁻¹⁵|x|,
///
/// and of the nine products of parts only those are made that matter; sums are
/// f32 [Henry19]:
///
///   three parts   x₁y₁ + x₁y₂ + x₂y₁ + x₂y₂ + x₁y₃ + x₃y₁, which is all of xy
///                 but some 2⁻²¹|xy| at worst: as exact as f32 products are
///   two parts     x₁y₁ + x₁y₂ + x₂y₁, all but some 2⁻¹³|xy| at worst
///   one part      x₁y₁ with x₁ the nearest number of eight bits (to even),
///                 all but some 2⁻⁷|xy| at worst
///
/// Numbers below 2⁻¹⁰² may lose their last part, as the tiles take denormal
/// numbers for zero. Infinite numbers give NaN.
///
/// Everything runs on the calling thread, and a number of the product depends
/// on its row, its column and the length of the sums alone.
namespace lipscope::bf16_tiles {

using Index = std::ptrdiff_t;

/// Whether this CPU and this kernel have them.
bool available();

enum class Parts { one = 1, two = 2, three = 3 };

/// How many numbers a right factor [k×n] takes when it is cut.
Index packed_size(Index k, Index n, Parts parts);

/// Cuts the right factor b [k×n] into tiles, for any number of products. `to`
/// is aligned to 64 bytes.
void pack(Floats b, Index k, Index n, Parts parts, std::uint16_t* to);

/// A right factor [k×n] that is cut already, borrowed for the call.
struct Packed {
  const std::uint16_t* data = nullptr;
  Index k = 0, n = 0;
  Parts parts = Parts::three;
};

/// C ← A B, or C ← C + A B, for A [m×k] and columns [first, first + cols) of B;
/// first is a multiple of 16.
void multiply(Floats a, Packed b, Index first, Index cols, float* c,
              Index c_stride, Index m, bool add);

}  // namespace lipscope::bf16_tiles
