#pragma once

#include <span>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"

/// SHA-256 of what numbers depend on: by its content, wherever it lies.
namespace lipscope {

/// Of token ids: of their decimal digits, with one blank between two.
std::string fingerprint(std::span<const Index> ids);

/// Of a matrix: of "ROWS COLUMNS\n" and its entries row by row, each as the
/// eight bytes of an f64, the least significant first.
std::string fingerprint(const Matrix& x);

/// Of a list of texts: each counts by itself, ["ab", "c"] is not ["a", "bc"].
std::string fingerprint(std::span<const std::string> texts);

}  // namespace lipscope
