#pragma once

#include <filesystem>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// The matrix in a NumPy file (.npy, version 1.0, 2.0 or 3.0) of dtype '<f2',
/// '<f4' or '<f8', in C or Fortran order; all of them widen exactly.
///
/// InputError, with the place, for anything else: another dtype, other than two
/// axes, bytes missing or left over, a NaN or an infinity. An array of one axis
/// is refused too: whether it is a row or a column only its owner knows.
Matrix read_npy(const std::filesystem::path& path);

/// Writes m as '<f8' in C order, version 1.0. The file appears whole or not at
/// all. InputError if it cannot be made; RunError for a full disk, and for a
/// number that is not finite: a file that its own reader refuses is not
/// written.
void write_npy(const std::filesystem::path& path, const Matrix& m);

}  // namespace lipscope
