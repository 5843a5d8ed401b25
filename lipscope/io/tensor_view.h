#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lipscope/core/matrix.h"
#include "lipscope/io/number_format.h"
#include "lipscope/io/tensor_shape.h"

namespace lipscope {

/// A tensor in somebody else's memory, of a file or of a caller: its numbers
/// row by row, at any address.
struct TensorView {
  NumberFormat format = NumberFormat::f32;
  TensorShape shape;
  std::span<const std::byte> bytes;
  std::string place;  ///< begins messages: "FILE: tensor \"NAME\""
};

/// All of a tensor of two axes, or of one as a single row [1×n], in float or
/// double. F64 read as float is rounded. InputError for another number of axes,
/// for a NaN or an infinity, with its place, and for an entry beyond the range
/// of float.
template <class Real>
MatrixOf<Real> matrix_of(const TensorView& tensor);

/// Rows [begin, begin + count) of it: a few of a large table, without touching
/// the others.
template <class Real>
MatrixOf<Real> rows_of(const TensorView& tensor, Index begin, Index count);

}  // namespace lipscope
