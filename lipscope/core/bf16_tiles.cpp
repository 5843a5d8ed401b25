#include "lipscope/core/bf16_tiles.h"

// This file is compiled for instructions that the CPU may not have (see
// CMakeLists.txt), and called where it has them: it uses no templates of other
// headers, of which the linker might keep this file's copy for everybody.

#if defined(__x86_64__) && defined(__linux__) && defined(__AMX_BF16__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lipscope/core/thread_scratch.h"
#include "lipscope/core/transpose_16.h"

namespace lipscope::bf16_tiles {
namespace {

// A tile of the left factor is 16 rows of 32 numbers; one of the right factor
// is 16 rows of 16 columns of pairs: row r has numbers 2r and 2r + 1 of each
// column. Both are the same up to a transposition of pairs.
constexpr Index side = 16, deep = 32, tile = side * deep;
// what is made at a time: sums of so many numbers, in so many rows
constexpr Index piece_depth = 12 * deep, left_rows = 8 * side;
constexpr Index near_bytes = 768 * 1024;

Index smaller(Index a, Index b) { return a < b ? a : b; }
Index pieces(Index size, Index of) { return (size + of - 1) / of; }

__mmask16 first(Index count) {
  return static_cast<__mmask16>(count >= side ? 0xffff
                                : count > 0   ? (1u << count) - 1
                                              : 0);
}

// The nearest number of 8 bits, to even; NaN stays what it is.
__m512i rounded(__m512i x) {
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
  const __m512i up =
      _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512 as_float = _mm512_castsi512_ps(x);
  return _mm512_mask_or_epi32(
      up, _mm512_cmp_ps_mask(as_float, as_float, _CMP_UNORD_Q), x,
      _mm512_set1_epi32(0x400000));
}

// The leading 8 bits are bf16's if the lower half of the f32 is zero; what is
// left is exact. One part alone is rounded.
template <int parts>
void cut(__m512i x, __m512i (&part)[parts]) {
  const __m512i upper_half = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  if constexpr (parts == 1) x = rounded(x);
  for (int p = 0; p < parts; ++p) {
    part[p] = _mm512_and_si512(x, upper_half);
    x = _mm512_castps_si512(
        _mm512_sub_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(part[p])));
  }
}

// One tile of each part. `vectors` (at most 16) are rows of a left factor or
// columns of a right one, of which `k` (at most 32) numbers are summed over;
// what is missing is zero. Along: the numbers of a vector stand side by side.
template <int parts, bool along, bool flip>
void pack_tile(const float* from, Index stride, Index vectors, Index k,
               uint16_t* to) {
  __m512i out[parts][side];
  if constexpr (along) {
    // the upper halves of 16 and 16 numbers, in their order
    const __m512i odd = _mm512_add_epi16(
        _mm512_set1_epi32(0x00030001),
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6,
                                            5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(0x00040004)));
    const __mmask16 low = first(k), high = first(k - side);
    for (Index r = 0; r < side; ++r) {
      const bool there = r < vectors;
      __m512i x[parts], y[parts];
      cut<parts>(_mm512_maskz_loadu_epi32(there ? low : __mmask16{0},
                                          from + r * stride),
                 x);
      cut<parts>(_mm512_maskz_loadu_epi32(there ? high : __mmask16{0},
                                          from + r * stride + side),
                 y);
      for (int p = 0; p < parts; ++p)
        out[p][r] = _mm512_permutex2var_epi16(x[p], odd, y[p]);
    }
  } else {
    const __mmask16 there = first(vectors);
    const auto row = [&](Index r) {
      return _mm512_maskz_loadu_epi32(r < k ? there : __mmask16{0},
                                      from + r * stride);
    };
    const __m512i upper_half = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    for (Index r = 0; r < side; ++r) {
      __m512i x[parts], y[parts];
      cut<parts>(row(2 * r), x);
      cut<parts>(row(2 * r + 1), y);
      for (int p = 0; p < parts; ++p)
        out[p][r] = _mm512_or_si512(_mm512_srli_epi32(x[p], 16),
                                    _mm512_and_si512(y[p], upper_half));
    }
  }
  for (int p = 0; p < parts; ++p) {
    if constexpr (flip) transpose(out[p]);
    for (Index r = 0; r < side; ++r)
      _mm512_store_si512(to + p * tile + r * deep, out[p][r]);
  }
}

// Strips of 16 vectors, from vector and number `begin` on: of each strip its
// tiles, one for every 32 numbers, one strip after another. Memory is read row
// by row.
template <int parts, bool right>
void pack_strips(const Floats& f, Index vector, Index vectors, Index begin,
                 Index k, uint16_t* to) {
  const Index strip = pieces(k, deep) * parts * tile;
  if (f.transposed == right) {
    for (Index v = 0; v < vectors; v += side)
      for (Index q = 0; q < k; q += deep)
        pack_tile<parts, true, right>(
            f.data + (vector + v) * f.stride + begin + q, f.stride,
            smaller(side, vectors - v), smaller(deep, k - q),
            to + v / side * strip + q / deep * parts * tile);
  } else {
    for (Index q = 0; q < k; q += deep)
      for (Index v = 0; v < vectors; v += side)
        pack_tile<parts, false, !right>(
            f.data + (begin + q) * f.stride + vector + v, f.stride,
            smaller(side, vectors - v), smaller(deep, k - q),
            to + v / side * strip + q / deep * parts * tile);
  }
}

// Tiles 0 to 3 are sums [2×2], 4 and 5 of the left factor, 6 and 7 of the
// right. Macros, as the number of a tile is part of the instruction.
#define LIPSCOPE_LEFT(part)            \
  _tile_loadd(4, a + (part)*tile, 64); \
  if constexpr (down > 1) _tile_loadd(5, a + strip + (part)*tile, 64);
#define LIPSCOPE_RIGHT(part)           \
  _tile_loadd(6, b + (part)*tile, 64); \
  if constexpr (across > 1) _tile_loadd(7, b + strip + (part)*tile, 64);
#define LIPSCOPE_SUM                                 \
  _tile_dpbf16ps(0, 4, 6);                           \
  if constexpr (across > 1) _tile_dpbf16ps(1, 4, 7); \
  if constexpr (down > 1) _tile_dpbf16ps(2, 5, 6);   \
  if constexpr (down > 1 && across > 1) _tile_dpbf16ps(3, 5, 7);

// Small products first, one tile loaded anew between any two of them.
template <int parts, int down, int across>
void sum(const uint16_t* a, const uint16_t* b, Index strip, Index steps) {
  for (Index s = 0; s < steps; ++s, a += parts * tile, b += parts * tile) {
    // clang-format off
    if constexpr (parts == 3) {
      LIPSCOPE_LEFT(2) LIPSCOPE_RIGHT(0) LIPSCOPE_SUM
      LIPSCOPE_LEFT(1) LIPSCOPE_SUM
      LIPSCOPE_RIGHT(1) LIPSCOPE_SUM
      LIPSCOPE_LEFT(0) LIPSCOPE_SUM
      LIPSCOPE_RIGHT(2) LIPSCOPE_SUM
      LIPSCOPE_RIGHT(0) LIPSCOPE_SUM
    } else if constexpr (parts == 2) {
      LIPSCOPE_LEFT(1) LIPSCOPE_RIGHT(0) LIPSCOPE_SUM
      LIPSCOPE_LEFT(0) LIPSCOPE_SUM
      LIPSCOPE_RIGHT(1) LIPSCOPE_SUM
    } else {
      LIPSCOPE_LEFT(0) LIPSCOPE_RIGHT(0) LIPSCOPE_SUM
    }
    // clang-format on
  }
}

#undef LIPSCOPE_LEFT
#undef LIPSCOPE_RIGHT
#undef LIPSCOPE_SUM

// rows×cols numbers of C, at most [2×2] tiles
template <int parts, int down, int across>
void sum_of_tiles(const uint16_t* a, const uint16_t* b, Index strip,
                  Index steps, float* c, Index stride, Index rows, Index cols,
                  bool add) {
  alignas(64) float whole_tiles[2 * side * 2 * side];
  const bool whole = rows == down * side && cols == across * side;
  float* to = whole ? c : whole_tiles;
  const Index to_stride = whole ? stride : 2 * side;
  const Index bytes = to_stride * static_cast<Index>(sizeof(float));
  float* below = to + side * to_stride;
  if (add) {
    if (!whole)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j)
          to[i * to_stride + j] = c[i * stride + j];
    _tile_loadd(0, to, bytes);
    if constexpr (across > 1) _tile_loadd(1, to + side, bytes);
    if constexpr (down > 1) _tile_loadd(2, below, bytes);
    if constexpr (down > 1 && across > 1) _tile_loadd(3, below + side, bytes);
  } else {
    // where the sums will go may be far away: fetched while they are made
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; j += side)
        __builtin_prefetch(c + i * stride + j, 1);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  sum<parts, down, across>(a, b, strip, steps);
  _tile_stored(0, to, bytes);
  if constexpr (across > 1) _tile_stored(1, to + side, bytes);
  if constexpr (down > 1) _tile_stored(2, below, bytes);
  if constexpr (down > 1 && across > 1) _tile_stored(3, below + side, bytes);
  if (!whole)
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j)
        c[i * stride + j] = to[i * to_stride + j];
}

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

template <int parts>
void multiply(const Floats& a, const Packed& packed, Index first, Index n,
              float* c, Index c_stride, Index m, bool add) {
  const Index k = packed.k;
  const uint16_t* of_piece = packed.data;
  uint16_t* left = static_cast<uint16_t*>(thread_scratch(
      Scratch::left_tiles, sizeof(uint16_t) * left_rows * piece_depth * parts));
  // columns of B whose tiles stay in the second-level cache
  constexpr Index near_cols = near_bytes / (2 * piece_depth * parts) / 32 * 32;
  static const TileShapes shapes;
  _tile_loadconfig(&shapes);
  for (Index q = 0; q < k; q += piece_depth) {
    const Index deep_here = smaller(piece_depth, k - q);
    const Index steps = pieces(deep_here, deep), strip = steps * parts * tile;
    const uint16_t* b = of_piece + first / side * strip;
    for (Index top = 0; top < m; top += left_rows) {
      const Index rows_here = smaller(left_rows, m - top);
      pack_strips<parts, false>(a, top, rows_here, q, deep_here, left);
      for (Index left_of = 0; left_of < n; left_of += near_cols)
        for (Index i = 0; i < rows_here; i += 2 * side)
          for (Index j = left_of; j < smaller(left_of + near_cols, n);
               j += 2 * side) {
            const Index rows = smaller(2 * side, rows_here - i);
            const Index cols = smaller(2 * side, n - j);
            const bool tall = rows > side, wide = cols > side;
            (tall ? (wide ? sum_of_tiles<parts, 2, 2>
                          : sum_of_tiles<parts, 2, 1>)
                  : (wide ? sum_of_tiles<parts, 1, 2>
                          : sum_of_tiles<parts, 1, 1>))(
                left + i / side * strip, b + j / side * strip, strip, steps,
                c + (top + i) * c_stride + j, c_stride, rows, cols,
                add || q > 0);
          }
    }
    of_piece += pieces(packed.n, side) * strip;
  }
  _tile_release();
}

template <int parts>
void pack(const Floats& b, Index k, Index n, uint16_t* to) {
  for (Index q = 0; q < k; q += piece_depth) {
    const Index deep_here = smaller(piece_depth, k - q);
    pack_strips<parts, true>(b, 0, n, q, deep_here, to);
    to += pieces(n, side) * pieces(deep_here, deep) * parts * tile;
  }
}

bool find_out() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool vectors = (b >> 16 & 1) && (b >> 30 & 1);  // avx512f, avx512bw
  const bool tiles = (d >> 22 & 1) && (d >> 24 & 1);    // amx-bf16, amx-tile
  // the kernel lends them to programs that ask
  constexpr int ask_for_state = 0x1023, tile_data = 18;
  return vectors && tiles &&
         syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
}

}  // namespace

bool available() {
  static const bool yes = find_out();
  return yes;
}

Index packed_size(Index k, Index n, Parts parts) {
  return pieces(k, deep) * pieces(n, side) * tile * static_cast<int>(parts);
}

void pack(Floats b, Index k, Index n, Parts parts, uint16_t* to) {
  (parts == Parts::one   ? pack<1>
   : parts == Parts::two ? pack<2>
                         : pack<3>)(b, k, n, to);
}

void multiply(Floats a, Packed b, Index first, Index cols, float* c,
              Index c_stride, Index m, bool add) {
  (b.parts == Parts::one ? multiply<1>
   : b.parts == Parts::two
       ? multiply<2>
       : multiply<3>)(a, b, first, cols, c, c_stride, m, add);
}

}  // namespace lipscope::bf16_tiles

#else

namespace lipscope::bf16_tiles {

bool available() { return false; }
Index packed_size(Index, Index, Parts) { return 0; }
void pack(Floats, Index, Index, Parts, std::uint16_t*) {}
void multiply(Floats, Packed, Index, Index, float*, Index, Index, bool) {}

}  // namespace lipscope::bf16_tiles

#endif
