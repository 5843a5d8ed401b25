#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <variant>

#include "lipscope/operators/matrix_operator.h"

/// Arrays between Python and the library: in by DLPack or the buffer protocol,
/// without a copy; out as NumPy arrays that own their memory.
namespace lipscope::python {

namespace nb = nanobind;

/// An array of Python with f32 or f64 numbers on the CPU, kept alive.
class Array {
 public:
  /// TypeError or ValueError, with `name` and what was given, for anything
  /// else.
  Array(nb::handle object, const std::string& name);

  std::size_t axes() const { return array_.ndim(); }
  Index size(std::size_t axis) const {
    return static_cast<Index>(array_.shape(axis));
  }
  std::string shape() const;  ///< as "[3, 4]"
  bool is_f32() const;

  /// The numbers as a matrix, without a copy; ValueError unless there are two
  /// axes and none is empty.
  std::variant<StridedMatrix<float>, StridedMatrix<double>> matrix() const;

  /// ValueError, with the place, if a number is NaN or infinite.
  void require_finite() const;

  /// A copy in f64 of an array with two axes, or with one.
  Matrix to_matrix() const;
  Vector to_vector() const;

 private:
  nb::ndarray<nb::ro> array_;
  std::string name_;
};

/// A NumPy array that owns these numbers.
nb::object to_numpy(Matrix matrix);
nb::object to_numpy(VectorOf<float> vector);
nb::object to_numpy(Vector vector);

/// The numbers that a callback returned, as so many of Real: anything that
/// numpy.asarray understands. ValueError, beginning with `where`, otherwise.
template <class Real>
VectorOf<Real> from_callback(nb::handle returned, Index expected,
                             const std::string& where);

}  // namespace lipscope::python
