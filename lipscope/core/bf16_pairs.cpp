#include "lipscope/core/bf16_pairs.h"

// This file is compiled for instructions that the CPU may not have (see
// CMakeLists.txt), and called where it has them: it uses no templates of other
// headers, of which the linker might keep this file's copy for everybody.

#if defined(__x86_64__) && defined(__AVX512BF16__)

#include <cpuid.h>
#include <immintrin.h>

#include "lipscope/core/thread_scratch.h"
#include "lipscope/core/transpose_16.h"

namespace lipscope::bf16_pairs {
namespace {

// A strip is 16 vectors, rows of a left factor or columns of a right one, side
// by side: of each its numbers 0 and 1, then of each its numbers 2 and 3, …
constexpr Index side = 16;
// what is summed at a time: so many rows by so many strips of columns
constexpr Index most_rows = 8, across = 3;
// sums of so many numbers, in so many rows, are made at a time
constexpr Index piece_depth = 256, left_rows = 128;
// What is packed often comes from far away, in rows too short for the CPU to
// see that they go on: it is asked for so many numbers or rows ahead.
constexpr Index numbers_ahead = 64, rows_ahead = 8;

Index smaller(Index a, Index b) { return a < b ? a : b; }
Index pieces(Index size, Index of) { return (size + of - 1) / of; }
// numbers of a strip for sums of k
Index strip_of(Index k) { return pieces(k, 2) * 2 * side; }

__mmask16 first(Index count) {
  return static_cast<__mmask16>(count >= side ? 0xffff
                                : count > 0   ? (1u << count) - 1
                                              : 0);
}

// x and y rounded: x₀ … x₁₅ y₀ … y₁₅
__m512i rounded(__m512 x, __m512 y) {
  return (__m512i)_mm512_cvtne2ps_pbh(y, x);
}

// Vectors [vector, vector + vectors) as strips, numbers [begin, begin + k) of
// each; what is missing is zero. Memory is read row by row.
void pack_strips(const Floats& f, bool right, Index vector, Index vectors,
                 Index begin, Index k, std::uint16_t* to) {
  const Index strip = strip_of(k);
  if (f.transposed == right) {  // the numbers of a vector stand side by side
    for (Index v = 0; v < vectors; v += side, to += strip)
      for (Index q = 0; q < k; q += 2 * side) {
        const float* from = f.data + (vector + v) * f.stride + begin + q;
        const __mmask16 low = first(k - q), high = first(k - q - side);
        __m512i r[side];
        for (Index i = 0; i < side; ++i, from += f.stride) {
          const bool there = v + i < vectors;
          __builtin_prefetch(from + numbers_ahead);
          __builtin_prefetch(from + numbers_ahead + side);
          r[i] = rounded(_mm512_maskz_loadu_ps(there ? low : 0, from),
                         _mm512_maskz_loadu_ps(there ? high : 0, from + side));
        }
        transpose(r);
        const Index pairs = smaller(side, pieces(k - q, 2));
        for (Index p = 0; p < pairs; ++p)
          _mm512_store_si512(to + (q + 2 * p) * side, r[p]);
      }
    return;
  }
  // x₀ y₀ x₁ y₁ …
  const __m512i in_pairs = _mm512_add_epi32(
      _mm512_set1_epi32(0x00100000),
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5,
                                          4, 3, 2, 1, 0),
                         _mm512_set1_epi32(0x00010001)));
  for (Index q = 0; q < k; q += 2) {
    const float* x = f.data + (begin + q) * f.stride + vector;
    const float* y = x + f.stride;
    for (Index v = 0; v < vectors; v += side) {
      const __mmask16 there = first(vectors - v);
      __builtin_prefetch(x + v + rows_ahead * f.stride);
      __builtin_prefetch(y + v + rows_ahead * f.stride);
      const __m512i both =
          rounded(_mm512_maskz_loadu_ps(there, x + v),
                  _mm512_maskz_loadu_ps(q + 1 < k ? there : 0, y + v));
      _mm512_store_si512(to + v / side * strip + q * side,
                         _mm512_permutexvar_epi16(in_pairs, both));
    }
  }
}

// `rows` rows of the product by so many strips of columns, and one piece of the
// sums; cols: how many columns there are
template <int rows, int strips>
void sum(const std::uint16_t* a, const std::uint16_t* b, Index strip, float* c,
         Index stride, Index cols, bool add) {
  __m512 s[rows][strips];
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < strips; ++j) s[r][j] = _mm512_setzero_ps();
  const auto* of_row = reinterpret_cast<const int*>(a);
  for (Index q = 0; q < strip; q += 2 * side, of_row += side) {
    __m512bh x[strips];
    for (int j = 0; j < strips; ++j)
      x[j] = (__m512bh)_mm512_load_si512(b + j * strip + q);
    for (int r = 0; r < rows; ++r) {
      const __m512bh y = (__m512bh)_mm512_set1_epi32(of_row[r]);
      for (int j = 0; j < strips; ++j)
        s[r][j] = _mm512_dpbf16_ps(s[r][j], x[j], y);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < strips; ++j) {
      float* to = c + r * stride + j * side;
      const __mmask16 there = first(cols - j * side);
      if (add)
        s[r][j] = _mm512_add_ps(_mm512_maskz_loadu_ps(there, to), s[r][j]);
      _mm512_mask_storeu_ps(to, there, s[r][j]);
    }
}

using Sum = void (*)(const std::uint16_t*, const std::uint16_t*, Index, float*,
                     Index, Index, bool);
#define LIPSCOPE_SUMS(strips)                                          \
  {                                                                    \
    sum<1, strips>, sum<2, strips>, sum<3, strips>, sum<4, strips>,    \
        sum<5, strips>, sum<6, strips>, sum<7, strips>, sum<8, strips> \
  }
constexpr Sum sums[across][most_rows] = {LIPSCOPE_SUMS(1), LIPSCOPE_SUMS(2),
                                         LIPSCOPE_SUMS(3)};
#undef LIPSCOPE_SUMS

bool find_out() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  // vectors of 512 bits, which the kernel must keep as well
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

}  // namespace

bool available() {
  static const bool yes = find_out();
  return yes;
}

Index packed_size(Index k, Index n) { return strip_of(k) * pieces(n, side); }

// piece after piece of the sums, strip after strip of a piece
void pack(Floats b, Index k, Index n, std::uint16_t* to) {
  for (Index q = 0; q < k; q += piece_depth) {
    const Index deep = smaller(piece_depth, k - q);
    pack_strips(b, true, 0, n, q, deep, to);
    to += pieces(n, side) * strip_of(deep);
  }
}

void multiply(Floats a, Packed packed, Index first, Index cols, float* c,
              Index c_stride, Index m, bool add) {
  std::uint16_t* left = static_cast<std::uint16_t*>(thread_scratch(
      Scratch::left_pairs, sizeof(std::uint16_t) * left_rows * piece_depth));
  const std::uint16_t* of_piece = packed.data;
  for (Index q = 0; q < packed.k; q += piece_depth) {
    const Index deep = smaller(piece_depth, packed.k - q);
    const Index strip = strip_of(deep);
    const std::uint16_t* b = of_piece + first / side * strip;
    for (Index top = 0; top < m; top += left_rows) {
      const Index rows_here = smaller(left_rows, m - top);
      pack_strips(a, false, top, rows_here, q, deep, left);
      for (Index j = 0; j < cols; j += across * side) {
        const Index cols_here = smaller(across * side, cols - j);
        for (Index i = 0; i < rows_here; i += most_rows) {
          const Index rows = smaller(most_rows, rows_here - i);
          sums[pieces(cols_here, side) - 1][rows - 1](
              left + i / side * strip + i % side * 2, b + j / side * strip,
              strip, c + (top + i) * c_stride + j, c_stride, cols_here,
              add || q > 0);
        }
      }
    }
    of_piece += pieces(packed.n, side) * strip;
  }
}

}  // namespace lipscope::bf16_pairs

#else

namespace lipscope::bf16_pairs {

bool available() { return false; }
Index packed_size(Index, Index) { return 0; }
void pack(Floats, Index, Index, std::uint16_t*) {}
void multiply(Floats, Packed, Index, Index, float*, Index, Index, bool) {}

}  // namespace lipscope::bf16_pairs

#endif
