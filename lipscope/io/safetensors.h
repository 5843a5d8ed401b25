#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/io/safetensors_header.h"
#include "lipscope/io/tensor_shape.h"
#include "lipscope/io/tensor_view.h"

namespace lipscope {

/// A safetensors file, opened for reading:
///
///   8 bytes   N, little-endian
///   N bytes   JSON {name: {dtype, shape, data_offsets: [begin, end]}, ...}
///   the rest  the numbers, tensors end to end, without holes
///
/// The file is not trusted. The whole header is checked on opening, against
/// itself and against the size of the file; the numbers of a tensor are checked
/// when it is read. What is wrong is an InputError with the file, the tensor
/// and the numbers.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::size_t size() const { return file_.bytes().size(); }  ///< in bytes

  std::vector<std::string> names() const;  ///< in alphabetical order
  bool contains(std::string_view name) const;

  /// InputError for a name that is not there, here and below; it says which
  /// names are.
  const TensorShape& shape(std::string_view name) const;

  /// As the file spells it: "F16", "I64".
  const std::string& dtype(std::string_view name) const;

  /// The tensor as it lies in the file, which must outlive the view. F16, BF16,
  /// F32 and F64 can be read; InputError for any other dtype.
  TensorView view(std::string_view name) const;

  /// A tensor of two axes, or of one as a single row [1×n]; every dtype that
  /// can be read widens exactly. InputError as of matrix_of.
  Matrix matrix(std::string_view name) const;

  /// The same in float or double.
  template <class Real>
  MatrixOf<Real> matrix_as(std::string_view name) const;

  /// Rows [begin, begin + count) of it: see rows_of.
  template <class Real>
  MatrixOf<Real> rows_as(std::string_view name, Index begin, Index count) const;

 private:
  const StoredTensor& tensor(std::string_view name) const;

  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::byte> data_;  // of file_, after the header
  StoredTensors tensors_;
};

/// Writes the matrices as tensors of two axes, in dtype "F64" or "F32". The
/// file appears whole or not at all. InputError if it cannot be made; RunError
/// for a full disk, and for a number that is not finite, or not in F32: a file
/// that its own reader refuses is not written.
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, Matrix>& tensors,
                       std::string_view dtype = "F64");

}  // namespace lipscope
