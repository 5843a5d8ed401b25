#pragma once

#include "lipscope/train/pass.h"

namespace lipscope {

/// Dropout [Srivastava14]: each entry is 0 with probability p = pass.dropout
/// (to the nearest 2⁻¹⁶) and otherwise divided by 1 − p, by the random numbers
/// of the given place. The map is linear and symmetric: on gradients the same
/// call is its backward.
template <class Real>
void dropout(MatrixOf<Real>& x, std::uint64_t place, const Pass& pass);

}  // namespace lipscope
