#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// Whether a Cholesky factorisation A = LLᵀ runs through in floating point: all
/// pivots are above 0 and all numbers finite. L takes the place of the lower
/// triangle with the diagonal. The upper triangle is neither read nor written.
/// Where it does not run through, the lower triangle holds nothing of use.
///
/// In columns of tiles, each tile one product, on several threads (0: all
/// cores); the tiles, not the threads, decide what is computed. For large
/// matrices: Eigen's own is for one thread.
bool factor_in_place(Matrix& a, int threads);

}  // namespace lipscope
