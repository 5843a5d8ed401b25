#pragma once

#include <cstddef>
#include <cstdint>

#include "lipscope/core/floats.h"

/// Products of f32 matrices whose numbers are rounded to eight bits first, on
/// CPUs with AVX512_BF16: one instruction multiplies pairs of bf16 numbers and
/// adds them to f32 sums, twice as many operations as with f32 vectors. With r
/// for the nearest number of eight bits (to even), |r(x) − x| ≤ 2⁻⁸|x|,
///
///   c_ij = Σ_q r(a_iq) r(b_qj),
///
/// where every product is exact and sums are f32. Numbers below 2⁻¹²⁶ count as
/// zero. Infinite numbers and NaN remain, as do those that round to infinity.
///
/// Everything runs on the calling thread. The order of additions is that of
/// core/panels.h, two products at a time: a number of the result depends on its
/// row, its column and the length of the sums alone. How the two products of a
/// pair are rounded with the sum is the CPU's.
namespace lipscope::bf16_pairs {

using Index = std::ptrdiff_t;

/// Whether this CPU has them.
bool available();

/// How many numbers a right factor [k×n] takes when it is cut.
Index packed_size(Index k, Index n);

/// Rounds the right factor b [k×n] and cuts it into strips, for any number of
/// products. `to` is aligned to 64 bytes.
void pack(Floats b, Index k, Index n, std::uint16_t* to);

/// A right factor [k×n] that is cut already, borrowed for the call.
struct Packed {
  const std::uint16_t* data = nullptr;
  Index k = 0, n = 0;
};

/// C ← A B, or C ← C + A B, for A [m×k] and columns [first, first + cols) of B;
/// first is a multiple of 16.
void multiply(Floats a, Packed b, Index first, Index cols, float* c,
              Index c_stride, Index m, bool add);

}  // namespace lipscope::bf16_pairs
