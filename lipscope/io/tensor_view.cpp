#include "lipscope/io/tensor_view.h"

#include <cmath>
#include <optional>

#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> matrix_of(const TensorView& tensor) {
  return rows_of<Real>(tensor, 0,
                       tensor.shape.size() == 2 ? tensor.shape.front() : 1);
}

template <class Real>
MatrixOf<Real> rows_of(const TensorView& tensor, Index begin, Index count) {
  const std::string& place = tensor.place;
  if (tensor.shape.empty() || tensor.shape.size() > 2)
    throw InputError(fmt::format("{}: has shape {}, expected one or two axes",
                                 place, to_string(tensor.shape)));
  const Index rows = tensor.shape.size() == 2 ? tensor.shape.front() : 1;
  const Index cols = tensor.shape.back();
  require(begin >= 0 && count >= 0 && count <= rows && begin <= rows - count,
          "{}: rows {} to {} of {}", place, begin, begin + count, rows);
  require(
      tensor.bytes.size() == storage_size(tensor.shape, size_of(tensor.format)),
      "{}: {} bytes for shape {} in {}", place, tensor.bytes.size(),
      to_string(tensor.shape), name_of(tensor.format));

  require_memory(
      sizeof(Real) * static_cast<double>(count) * static_cast<double>(cols),
      fmt::format("{}: {} rows of {} numbers", place, count, cols));

  const std::size_t row_size =
      static_cast<std::size_t>(cols) * size_of(tensor.format);
  const std::span<const std::byte> bytes =
      tensor.bytes.subspan(static_cast<std::size_t>(begin) * row_size,
                           static_cast<std::size_t>(count) * row_size);
  MatrixOf<Real> m = decode<Real>(bytes, tensor.format, count, cols);
  if (const std::optional<Index> bad = first_non_finite(m)) {
    const double value = number_at(bytes, tensor.format, *bad);
    throw InputError(fmt::format(
        "{}: entry {} of {} (row {}, column {}, counted from 0) is {}, {}",
        place, begin * cols + *bad, rows * cols, begin + *bad / cols,
        *bad % cols, value,
        std::isfinite(value) ? "beyond the range of float"
                             : "expected a finite number"));
  }
  return m;
}

template MatrixOf<float> matrix_of(const TensorView&);
template MatrixOf<double> matrix_of(const TensorView&);
template MatrixOf<float> rows_of(const TensorView&, Index, Index);
template MatrixOf<double> rows_of(const TensorView&, Index, Index);

}  // namespace lipscope
