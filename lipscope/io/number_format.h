#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// How numbers are stored, in files little-endian: IEEE 754 binary16, binary32
/// and binary64, and bfloat16, which is the upper half of a binary32.
enum class NumberFormat { f16, bf16, f32, f64 };

std::string name_of(NumberFormat format);  ///< "f16", "bf16", "f32", "f64"

/// InputError, beginning with `where`, for other words than these names.
NumberFormat parse_number_format(const std::string& word,
                                 const std::string& where);

/// Bytes taken by one number.
std::size_t size_of(NumberFormat format);

/// Number i of those stored in the bytes, which may stand at any address.
/// Every format widens to double exactly.
double number_at(std::span<const std::byte> bytes, NumberFormat format,
                 Index i);

/// The stored numbers as a matrix, row by row. There must be as many bytes as
/// the shape takes. Exact, except for f64 read as float, which rounds and may
/// overflow to infinity.
template <class Real>
MatrixOf<Real> decode(std::span<const std::byte> bytes, NumberFormat format,
                      Index rows, Index cols);

/// Where the first NaN or infinity stands, counted row by row; nothing if every
/// entry is finite.
template <class Real>
std::optional<Index> first_non_finite(const MatrixOf<Real>& m);

}  // namespace lipscope
