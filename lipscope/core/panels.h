#pragma once

#include "lipscope/core/matrix.h"

/// Products of matrices for every CPU, on the calling thread, in an order of
/// additions that is written down here. With the sums cut into pieces of
/// `piece_depth`, a number of C ← A B is
///
///   c_ij = (s₀ + s₁) + …,   s_b = fma(a_iq, b_qj, …) over q of piece b in
///   order,
///
/// and C ← C + A B begins with c_ij + s₀. It depends on row i of A, column j of
/// B and the length of the sums alone: not on the number of rows or columns
/// beside it, nor on where the matrices stand in memory. Libraries promise
/// nothing of that kind: they choose their order by the shape.
///
/// (Where the CPU has no fused multiply-add, a product is rounded before it is
/// added.)
namespace lipscope::panels {

constexpr Index piece_depth = 256;

/// Rows `stride` apart; transposed: the factor is its transpose. The numbers
/// are borrowed for the call.
template <class Real>
struct Numbers {
  const Real* data = nullptr;
  Index stride = 0;
  bool transposed = false;
};

/// A panel has so many columns of a right factor; a divisor of 48.
template <class Real>
Index width();

/// How many numbers a right factor [k×n] takes when it is cut into panels.
template <class Real>
Index packed_size(Index k, Index n);

/// Cuts the right factor b [k×n] into panels, for any number of products. `to`
/// is aligned to 64 bytes.
template <class Real>
void pack(Numbers<Real> b, Index k, Index n, Real* to);

/// C ← A B, or C ← C + A B, for A [m×k] and columns [first, first + cols) of
/// the B [k×n] that is cut into `panels`; first is a multiple of the width.
template <class Real>
void multiply(Numbers<Real> a, const Real* panels, Index k, Index n,
              Index first, Index cols, Real* c, Index c_stride, Index m,
              bool add);

}  // namespace lipscope::panels
