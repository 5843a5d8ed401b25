#include "lipscope/io/safetensors.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/number_format.h"

namespace lipscope {
namespace {

// the limit of the reference implementation
constexpr std::uint64_t longest_header = 100'000'000;

constexpr std::size_t length_size = sizeof(std::uint64_t);

// The header of a file that has not been looked at yet.
std::string_view header_of(const std::filesystem::path& path,
                           std::span<const std::byte> bytes) {
  if (bytes.size() < length_size)
    throw InputError(fmt::format(
        "{}: {} bytes, a safetensors file starts with {} that give the length "
        "of its header",
        path.string(), bytes.size(), length_size));
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), length_size);

  // what a repository holds in place of a large file until it is fetched
  if (std::memcmp(bytes.data(), "version ", length_size) == 0)
    throw InputError(fmt::format(
        "{}: starts with \"version \": it looks like a Git LFS pointer, "
        "expected the safetensors file it stands for",
        path.string()));
  if (length > longest_header)
    throw InputError(fmt::format(
        "{}: announces a header of {} bytes, at most {} are allowed; is this a "
        "safetensors file?",
        path.string(), length, longest_header));
  if (length > bytes.size() - length_size)
    throw InputError(fmt::format(
        "{}: announces a header of {} bytes, only {} follow; the file may have "
        "been cut short",
        path.string(), length, bytes.size() - length_size));
  return {reinterpret_cast<const char*>(bytes.data()) + length_size,
          static_cast<std::size_t>(length)};
}

std::optional<NumberFormat> number_format(std::string_view dtype) {
  if (dtype == "F16") return NumberFormat::f16;
  if (dtype == "BF16") return NumberFormat::bf16;
  if (dtype == "F32") return NumberFormat::f32;
  if (dtype == "F64") return NumberFormat::f64;
  return std::nullopt;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(path) {
  const std::string_view header = header_of(path, file_.bytes());
  data_ = file_.bytes().subspan(length_size + header.size());
  tensors_ = parse_safetensors_header(path, header, data_.size());
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

bool SafetensorsFile::contains(std::string_view name) const {
  return tensors_.contains(name);
}

const TensorShape& SafetensorsFile::shape(std::string_view name) const {
  return tensor(name).shape;
}

const std::string& SafetensorsFile::dtype(std::string_view name) const {
  return tensor(name).dtype;
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;

  constexpr std::size_t most = 12;
  std::string there = tensors_.empty() ? "no tensors" : "";
  std::size_t shown = 0;
  for (const auto& [other, tensor] : tensors_) {
    if (shown == most) break;
    there += (shown++ == 0 ? "" : ", ") + printable(other);
  }
  if (tensors_.size() > most)
    there += fmt::format(" and {} more", tensors_.size() - most);
  throw InputError(fmt::format("{}: no tensor is called {}; there are {}",
                               path_.string(), printable(name), there));
}

Matrix SafetensorsFile::matrix(std::string_view name) const {
  return matrix_as<double>(name);
}

TensorView SafetensorsFile::view(std::string_view name) const {
  const StoredTensor& stored = tensor(name);
  std::string place =
      fmt::format("{}: tensor {}", path_.string(), printable(name));
  const std::optional<NumberFormat> format = number_format(stored.dtype);
  if (!format)
    throw InputError(fmt::format(
        "{}: has dtype {}, only F16, BF16, F32 and F64 can be read as numbers",
        place, printable(stored.dtype)));
  // checked on opening: the tensor takes the bytes it should
  return {.format = *format,
          .shape = stored.shape,
          .bytes = data_.subspan(stored.begin, stored.end - stored.begin),
          .place = std::move(place)};
}

template <class Real>
MatrixOf<Real> SafetensorsFile::matrix_as(std::string_view name) const {
  return matrix_of<Real>(view(name));
}

template <class Real>
MatrixOf<Real> SafetensorsFile::rows_as(std::string_view name, Index begin,
                                        Index count) const {
  return rows_of<Real>(view(name), begin, count);
}

template MatrixOf<float> SafetensorsFile::rows_as(std::string_view, Index,
                                                  Index) const;
template MatrixOf<double> SafetensorsFile::rows_as(std::string_view, Index,
                                                   Index) const;
template MatrixOf<float> SafetensorsFile::matrix_as(std::string_view) const;
template MatrixOf<double> SafetensorsFile::matrix_as(std::string_view) const;

namespace {

// {name: {dtype, shape, data_offsets}} of tensors laid end to end, padded with
// blanks so that the data begins at a multiple of eight bytes, as the reference
// implementation has it
std::string header_for(const std::map<std::string, Matrix>& tensors,
                       std::string_view dtype, std::size_t entry_size) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t end = 0;
  for (const auto& [name, m] : tensors) {
    const std::size_t begin = end;
    end += static_cast<std::size_t>(m.size()) * entry_size;
    header[name] = {{"dtype", dtype},
                    {"shape", {m.rows(), m.cols()}},
                    {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

bool is_utf8(const std::string& name) {
  try {
    nlohmann::json(name).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

template <class Real>
void write_all_as(const std::filesystem::path& path,
                  const std::map<std::string, Matrix>& tensors,
                  std::string_view dtype) {
  const std::string header = header_for(tensors, dtype, sizeof(Real));
  const std::uint64_t length = header.size();

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const auto& [name, m] : tensors) {
    const MatrixOf<Real> stored = m.template cast<Real>();
    if (const std::optional<Index> bad = first_non_finite(stored))
      throw RunError(fmt::format(
          "{}: tensor {} not written: row {}, column {} is {}, not finite in "
          "{}",
          path.string(), printable(name), *bad / m.cols(), *bad % m.cols(),
          m.data()[*bad], dtype));
    file.write(std::as_bytes(std::span(stored.data(), stored.size())));
  }
  file.commit();
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, Matrix>& tensors,
                       std::string_view dtype) {
  require(dtype == "F64" || dtype == "F32",
          "write_safetensors: dtype is {}, can be F64 or F32",
          printable(dtype));
  for (const auto& [name, m] : tensors)
    require(name != "__metadata__" && is_utf8(name),
            "write_safetensors: {} cannot be the name of a tensor",
            printable(name));
  if (dtype == "F64")
    write_all_as<double>(path, tensors, dtype);
  else
    write_all_as<float>(path, tensors, dtype);
}

}  // namespace lipscope
