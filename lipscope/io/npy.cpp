#include "lipscope/io/npy.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/io/number_format.h"
#include "lipscope/io/tensor_shape.h"

namespace lipscope {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

// What the dictionary at the head of the file says.
struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<TensorShape> shape;
};

// Reads the one kind of Python literal that NumPy writes,
//
//   {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//
// from left to right without ever going back.
class HeaderParser {
 public:
  HeaderParser(const std::filesystem::path& path, std::string_view text)
      : path_(path), text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !header.descr)
        header.descr = string();
      else if (key == "fortran_order" && !header.fortran_order)
        header.fortran_order = boolean();
      else if (key == "shape" && !header.shape)
        header.shape = tuple();
      else
        refuse("descr, fortran_order and shape, each once");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) refuse("nothing but blanks after the dictionary");
    if (!header.descr || !header.fortran_order || !header.shape)
      refuse("all of descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    throw InputError(fmt::format("{}: header, byte {} of {}: expected {}",
                                 path_.string(), at_, text_.size(), expected));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }

  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}'", c));
  }

  // printable ASCII without escapes: nothing that is needed here has any
  std::string string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"')
      refuse("a string in quotes; structured dtypes cannot be read");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] < ' ' || text_[at_] > '~' || text_[at_] == '\\')
        refuse("a string of plain characters");
      ++at_;
    }
    if (at_ == text_.size()) refuse("the end of a string");
    return std::string(text_.substr(begin, at_++ - begin));
  }

  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    refuse("True or False");
  }

  // (), (3,), (3, 4), (3, 4,), but not (3), which Python takes for a number
  TensorShape tuple() {
    TensorShape lengths;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) refuse("',' or ')'");
      lengths.push_back(integer());
      comma = accept(',');
    }
    if (lengths.size() == 1 && !comma) refuse("',' before ')'");
    return lengths;
  }

  Index integer() {
    skip_blanks();
    // from_chars would take a minus sign
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    if (begin == end || *begin < '0' || *begin > '9')
      refuse("an integer that is not negative");
    Index value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) refuse("an integer below 2^63");
    at_ += static_cast<std::size_t>(stop - begin);
    return value;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

// The file in its two parts, with the lengths checked.
struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Parts split(const std::filesystem::path& path,
            std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  constexpr std::size_t version_end = magic.size() + 2;
  if (!text.starts_with(magic) || text.size() < version_end)
    throw InputError(
        fmt::format("{}: {} bytes that are not the start of a NumPy file, "
                    "expected \\x93NUMPY and a version",
                    path.string(), bytes.size()));
  const int major = static_cast<unsigned char>(text[magic.size()]);
  const int minor = static_cast<unsigned char>(text[magic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    throw InputError(
        fmt::format("{}: NumPy format version {}.{}, expected 1.0, 2.0 or 3.0",
                    path.string(), major, minor));

  // the length of the header took two bytes before version 2.0, and four since
  const std::size_t length_size = major == 1 ? 2 : 4;
  const std::size_t header_begin = version_end + length_size;
  std::uint32_t length = 0;
  if (bytes.size() >= header_begin)
    std::memcpy(&length, bytes.data() + version_end, length_size);
  if (bytes.size() < header_begin || bytes.size() - header_begin < length)
    throw InputError(fmt::format(
        "{}: {} bytes, the header alone takes {}; the file may have been cut "
        "short",
        path.string(), bytes.size(), header_begin + length));
  return {text.substr(header_begin, length),
          bytes.subspan(header_begin + length)};
}

NumberFormat number_format(const std::filesystem::path& path,
                           const std::string& descr) {
  if (descr == "<f2") return NumberFormat::f16;
  if (descr == "<f4") return NumberFormat::f32;
  if (descr == "<f8") return NumberFormat::f64;
  throw InputError(fmt::format(
      "{}: dtype '{}', expected '<f2', '<f4' or '<f8'{}", path.string(),
      descr.substr(0, 40), descr.starts_with('>') ? " (little-endian)" : ""));
}

}  // namespace

Matrix read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto [text, data] = split(path, file.bytes());
  const Header header = HeaderParser(path, text).parse();
  const NumberFormat format = number_format(path, *header.descr);
  const TensorShape& shape = *header.shape;
  if (shape.size() != 2)
    throw InputError(
        fmt::format("{}: shape {} has {} axes, expected two (rows, columns)",
                    path.string(), to_string(shape), shape.size()));
  const std::optional<std::uint64_t> size =
      storage_size(shape, size_of(format));
  if (size != data.size())
    throw InputError(fmt::format(
        "{}: shape {} of '{}' takes {} bytes, {} follow the header",
        path.string(), to_string(shape), *header.descr,
        size ? std::to_string(*size) : "more than 2^64", data.size()));

  require_memory(
      sizeof(double) * static_cast<double>(shape[0]) *
          static_cast<double>(shape[1]),
      fmt::format("{}: a matrix of shape {}", path.string(), to_string(shape)));

  // A matrix in Fortran order is its transpose in C order. An empty one is not
  // transposed: Eigen would walk over its rows, and files say any number.
  const Matrix m =
      *header.fortran_order && *size > 0
          ? Matrix(decode<double>(data, format, shape[1], shape[0]).transpose())
          : decode<double>(data, format, shape[0], shape[1]);
  if (const std::optional<Index> bad = first_non_finite(m))
    throw InputError(fmt::format(
        "{}: row {}, column {} (counted from 0) is {}, expected a finite "
        "number",
        path.string(), *bad / m.cols(), *bad % m.cols(), m.data()[*bad]));
  return m;
}

void write_npy(const std::filesystem::path& path, const Matrix& m) {
  if (const std::optional<Index> bad = first_non_finite(m))
    throw RunError(fmt::format(
        "{}: not written: row {}, column {} is {}, not finite", path.string(),
        *bad / m.cols(), *bad % m.cols(), m.data()[*bad]));

  // blanks and a newline fill the header so that the data starts at a multiple
  // of 64 bytes, and readers can map it
  std::string head = std::string(magic) + '\x01' + '\x00';
  std::string header = fmt::format(
      "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}",
      m.rows(), m.cols());
  const std::size_t fixed = head.size() + 2;
  const std::size_t whole = (fixed + header.size() + 1 + 63) / 64 * 64;
  header.resize(whole - fixed - 1, ' ');
  header += '\n';
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(head)));
  file.write(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(std::span(m.data(), m.size())));
  file.commit();
}

}  // namespace lipscope
