#include "lipscope/io/number_format.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/io/tensor_shape.h"

namespace lipscope {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and their bytes are used as they are");

// sign 1, exponent 5 (bias 15), fraction 10
double widen_f16(std::uint16_t half) {
  const double sign = (half >> 15) != 0 ? -1.0 : 1.0;
  const int exponent = (half >> 10) & 31;
  const std::uint64_t fraction = half & 1023;
  if (exponent == 0) return sign * static_cast<double>(fraction) * 0x1p-24;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const auto biased = static_cast<std::uint64_t>(exponent - 15 + 1023);
  return sign * std::bit_cast<double>(biased << 52 | fraction << 42);
}

double widen_bf16(std::uint16_t upper) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
}

// memcpy, as nothing in a file is promised to be aligned
template <class Stored>
Stored load(const std::byte* bytes, Index i) {
  Stored stored;
  std::memcpy(&stored, bytes + static_cast<std::size_t>(i) * sizeof(Stored),
              sizeof(Stored));
  return stored;
}

// number i, with the format known to the compiler
template <NumberFormat format>
double widened(const std::byte* bytes, Index i) {
  if constexpr (format == NumberFormat::f16)
    return widen_f16(load<std::uint16_t>(bytes, i));
  else if constexpr (format == NumberFormat::bf16)
    return widen_bf16(load<std::uint16_t>(bytes, i));
  else if constexpr (format == NumberFormat::f32)
    return load<float>(bytes, i);
  else
    return load<double>(bytes, i);
}

template <NumberFormat format, class Real>
MatrixOf<Real> decoded(const std::byte* bytes, Index rows, Index cols) {
  MatrixOf<Real> m(rows, cols);
  for (Index i = 0; i < m.size(); ++i)
    m.data()[i] = static_cast<Real>(widened<format>(bytes, i));
  return m;
}

}  // namespace

std::string name_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::f16:
      return "f16";
    case NumberFormat::bf16:
      return "bf16";
    case NumberFormat::f32:
      return "f32";
    case NumberFormat::f64:
      return "f64";
  }
  throw std::logic_error("a number format without a name");
}

NumberFormat parse_number_format(const std::string& word,
                                 const std::string& where) {
  for (const NumberFormat format : {NumberFormat::f16, NumberFormat::bf16,
                                    NumberFormat::f32, NumberFormat::f64})
    if (word == name_of(format)) return format;
  throw InputError(
      fmt::format("{} {}: expected f16, bf16, f32 or f64", where, word));
}

std::size_t size_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::f16:
    case NumberFormat::bf16:
      return 2;
    case NumberFormat::f32:
      return 4;
    case NumberFormat::f64:
      break;
  }
  return 8;
}

double number_at(std::span<const std::byte> bytes, NumberFormat format,
                 Index i) {
  const auto at = static_cast<std::size_t>(i) * size_of(format);
  return decode<double>(bytes.subspan(at, size_of(format)), format, 1, 1)(0, 0);
}

template <class Real>
MatrixOf<Real> decode(std::span<const std::byte> bytes, NumberFormat format,
                      Index rows, Index cols) {
  const std::optional<std::uint64_t> expected =
      storage_size({rows, cols}, size_of(format));
  require(bytes.size() == expected, "decode: {} bytes for {} of {} bytes each",
          bytes.size(), to_string({rows, cols}), size_of(format));
  switch (format) {
    case NumberFormat::f16:
      return decoded<NumberFormat::f16, Real>(bytes.data(), rows, cols);
    case NumberFormat::bf16:
      return decoded<NumberFormat::bf16, Real>(bytes.data(), rows, cols);
    case NumberFormat::f32:
      return decoded<NumberFormat::f32, Real>(bytes.data(), rows, cols);
    case NumberFormat::f64:
      break;
  }
  return decoded<NumberFormat::f64, Real>(bytes.data(), rows, cols);
}

template <class Real>
std::optional<Index> first_non_finite(const MatrixOf<Real>& m) {
  // [0×n] first: Eigen walks over the n empty columns, and files say any n
  if (m.size() == 0 || m.allFinite()) return std::nullopt;
  Index i = 0;
  while (std::isfinite(m.data()[i])) ++i;
  return i;
}

template MatrixOf<float> decode(std::span<const std::byte>, NumberFormat, Index,
                                Index);
template MatrixOf<double> decode(std::span<const std::byte>, NumberFormat,
                                 Index, Index);
template std::optional<Index> first_non_finite(const MatrixOf<float>&);
template std::optional<Index> first_non_finite(const MatrixOf<double>&);

}  // namespace lipscope
