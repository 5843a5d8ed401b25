#include "arrays.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <utility>

namespace lipscope::python {
namespace {

std::string dtype_name(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(dtype.code);
  const char* word = code == Code::Int       ? "int"
                     : code == Code::UInt    ? "uint"
                     : code == Code::Float   ? "float"
                     : code == Code::Bfloat  ? "bfloat"
                     : code == Code::Complex ? "complex"
                     : code == Code::Bool    ? "bool"
                                             : "unknown type, bits ";
  return fmt::format("{}{}", word, static_cast<int>(dtype.bits));
}

template <class Stored>
void find_not_finite(const StridedMatrix<Stored>& m, const std::string& name,
                     bool one_axis) {
  for (Index i = 0; i < m.rows; ++i) {
    const Stored* row = m.data + i * m.down;
    bool finite = true;
    for (Index j = 0; j < m.cols; ++j)
      finite &= std::isfinite(row[j * m.right]);
    if (finite) continue;
    for (Index j = 0; j < m.cols; ++j)
      if (!std::isfinite(row[j * m.right]))
        throw nb::value_error(
            (one_axis
                 ? fmt::format("{}: entry {} is {}", name, j, row[j * m.right])
                 : fmt::format("{}: entry [{}, {}] is {}", name, i, j,
                               row[j * m.right]))
                .c_str());
  }
}

template <class Stored>
Matrix copied(const StridedMatrix<Stored>& m) {
  Matrix copy(m.rows, m.cols);
  for (Index i = 0; i < m.rows; ++i)
    for (Index j = 0; j < m.cols; ++j)
      copy(i, j) = static_cast<double>(m.data[i * m.down + j * m.right]);
  return copy;
}

template <class Numbers>
nb::object owned(Numbers numbers, std::initializer_list<std::size_t> shape) {
  using Real = typename Numbers::Scalar;
  auto* kept = new Numbers(std::move(numbers));
  nb::capsule owner(kept,
                    [](void* p) noexcept { delete static_cast<Numbers*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Real>(kept->data(), shape, owner));
}

}  // namespace

Array::Array(nb::handle object, const std::string& name) : name_(name) {
  if (!nb::try_cast(object, array_, false)) {
    const std::string type = nb::cast<std::string>(
        nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())))
            .attr("__name__"));
    throw nb::type_error(
        fmt::format("{}: expected an array (NumPy, PyTorch, JAX or anything "
                    "with DLPack or the buffer protocol), got {}",
                    name, type)
            .c_str());
  }
  if (array_.device_type() != nb::device::cpu::value)
    throw nb::value_error(
        fmt::format("{}: the array is on device type {} of DLPack; only arrays "
                    "in the memory of the CPU (type 1) are read",
                    name, array_.device_type())
            .c_str());
  const nb::dlpack::dtype dtype = array_.dtype();
  if (dtype != nb::dtype<float>() && dtype != nb::dtype<double>())
    throw nb::value_error(fmt::format("{}: expected float32 or float64, got {}",
                                      name, dtype_name(dtype))
                              .c_str());
}

bool Array::is_f32() const { return array_.dtype() == nb::dtype<float>(); }

std::string Array::shape() const {
  std::string text = "[";
  for (std::size_t i = 0; i < axes(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", size(i));
  return text + "]";
}

std::variant<StridedMatrix<float>, StridedMatrix<double>> Array::matrix()
    const {
  if (axes() != 2)
    throw nb::value_error(fmt::format("{}: expected 2 axes, got {} in shape {}",
                                      name_, axes(), shape())
                              .c_str());
  if (size(0) == 0 || size(1) == 0)
    throw nb::value_error(
        fmt::format("{}: an empty array of shape {}", name_, shape()).c_str());
  const Index down = array_.stride(0), right = array_.stride(1);
  if (is_f32())
    return StridedMatrix<float>{static_cast<const float*>(array_.data()),
                                size(0), size(1), down, right};
  return StridedMatrix<double>{static_cast<const double*>(array_.data()),
                               size(0), size(1), down, right};
}

void Array::require_finite() const {
  std::visit([&](const auto& m) { find_not_finite(m, name_, false); },
             matrix());
}

Matrix Array::to_matrix() const {
  require_finite();
  return std::visit([](const auto& m) { return copied(m); }, matrix());
}

Vector Array::to_vector() const {
  if (axes() != 1)
    throw nb::value_error(fmt::format("{}: expected 1 axis, got {} in shape {}",
                                      name_, axes(), shape())
                              .c_str());
  const auto copy = [&]<class Stored>(const Stored* data) {
    const StridedMatrix<Stored> row{data, 1, size(0), 0, array_.stride(0)};
    find_not_finite(row, name_, true);
    return flatten(copied(row));
  };
  return is_f32() ? copy(static_cast<const float*>(array_.data()))
                  : copy(static_cast<const double*>(array_.data()));
}

nb::object to_numpy(Matrix matrix) {
  const auto rows = static_cast<std::size_t>(matrix.rows()),
             cols = static_cast<std::size_t>(matrix.cols());
  return owned(std::move(matrix), {rows, cols});
}

nb::object to_numpy(VectorOf<float> vector) {
  const auto size = static_cast<std::size_t>(vector.size());
  return owned(std::move(vector), {size});
}

nb::object to_numpy(Vector vector) {
  const auto size = static_cast<std::size_t>(vector.size());
  return owned(std::move(vector), {size});
}

template <class Real>
VectorOf<Real> from_callback(nb::handle returned, Index expected,
                             const std::string& where) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object given = numpy.attr("asarray")(returned);
  const std::string kind =
      nb::cast<std::string>(given.attr("dtype").attr("kind"));
  if (kind != "f" && kind != "i" && kind != "u")
    throw nb::value_error(
        fmt::format("{}: returned {} and not real numbers", where,
                    nb::cast<std::string>(given.attr("dtype").attr("name")))
            .c_str());
  const nb::object flat = numpy.attr("ascontiguousarray")(
      given.attr("reshape")(-1),
      numpy.attr(sizeof(Real) == 4 ? "float32" : "float64"));
  const auto array =
      nb::cast<nb::ndarray<const Real, nb::ndim<1>, nb::c_contig>>(flat);
  if (static_cast<Index>(array.shape(0)) != expected)
    throw nb::value_error(fmt::format("{}: returned {} numbers, expected {}",
                                      where, array.shape(0), expected)
                              .c_str());
  return Eigen::Map<const VectorOf<Real>>(array.data(), expected);
}

template VectorOf<float> from_callback(nb::handle, Index, const std::string&);
template VectorOf<double> from_callback(nb::handle, Index, const std::string&);

}  // namespace lipscope::python
