#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// The speed in GFLOP/s at which this machine multiplies two [size×size]
/// matrices: the best of a few tries, with the rows of the result cut into one
/// strip for each thread (0: all cores), so that nothing is spent on small
/// tiles. What every other speed is a fraction of.
template <class Real>
double gemm_peak(Index size, int threads);

}  // namespace lipscope
