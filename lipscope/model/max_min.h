#pragma once

#include "lipscope/core/matrix.h"

/// MaxMin [Anil19]: of the m features of a token, j and j + m/2 become the
/// larger and the smaller of the two, for j < m/2. Wherever no pair is equal
/// its Jacobian is a permutation: 1-Lipschitz in the 2-norm of a token, and
/// nothing that passes gets shorter.
namespace lipscope {

/// 1 where feature j < m/2 is smaller than its partner, so that they change
/// places, else 0 [n×m/2]; m must be even.
template <class Real>
MatrixOf<Real> swapped_pairs(const MatrixOf<Real>& x);

/// x becomes its value, and `swapped` what swapped_pairs gives. One thread.
template <class Real>
void sort_pairs(View<Real> x, View<Real> swapped);

/// The pairs of each row of x, swapped where `swapped` says so: the value, and
/// as a swap is its own transpose, the tangent and the cotangent too. One
/// thread.
template <class Real>
void swap_pairs(View<Real> x, const ConstView<Real>& swapped);

}  // namespace lipscope
