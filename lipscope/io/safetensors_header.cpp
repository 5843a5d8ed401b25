#include "lipscope/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {
namespace {

using nlohmann::json;
using std::filesystem::path;

// A header is three deep.
constexpr int deepest = 16;

template <class... Args>
[[noreturn]] void refuse_header(const path& file,
                                fmt::format_string<Args...> message,
                                Args&&... args) {
  throw InputError(
      fmt::format("{}: header: {}", file.string(),
                  fmt::format(message, std::forward<Args>(args)...)));
}

template <class... Args>
[[noreturn]] void refuse_tensor(const path& file, std::string_view name,
                                fmt::format_string<Args...> message,
                                Args&&... args) {
  throw InputError(
      fmt::format("{}: tensor {}: {}", file.string(), printable(name),
                  fmt::format(message, std::forward<Args>(args)...)));
}

// The JSON of the header.
json parse_header_json(const path& file, std::string_view header) {
  if (header.empty() || header.front() != '{')
    refuse_header(file, "expected JSON that starts with '{{', found {}",
                  header.empty() ? "nothing" : printable(header.substr(0, 8)));
  return parse_json(fmt::format("{}: header", file.string()), header, deepest);
}

// Bits taken by one entry, for the dtypes of the format.
std::optional<std::uint64_t> bits_of(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> known = {
      {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"BOOL", 8},
      {"U8", 8},          {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8},     {"F8_E4M3FNUZ", 8}, {"U16", 16},    {"I16", 16},
      {"F8_E5M2FNUZ", 8}, {"F16", 16},        {"BF16", 16},   {"U32", 32},
      {"I32", 32},        {"F32", 32},        {"U64", 64},    {"I64", 64},
      {"F64", 64},        {"C64", 64}};
  const auto found = known.find(dtype);
  if (found == known.end()) return std::nullopt;
  return found->second;
}

const json& member(const path& file, const std::string& name,
                   const json& tensor, const char* key) {
  const auto found = tensor.find(key);
  if (found == tensor.end()) refuse_tensor(file, name, "has no {}", key);
  return *found;
}

// A list of integers that are not negative and fit into an Index.
std::vector<Index> integers(const path& file, const std::string& name,
                            const json& tensor, const char* key) {
  const json& list = member(file, name, tensor, key);
  const bool good =
      list.is_array() &&
      std::all_of(list.begin(), list.end(), [](const json& i) {
        // integers beyond 64 bits come out of the parser as doubles
        return i.is_number_unsigned() &&
               i.get<std::uint64_t>() <= std::numeric_limits<Index>::max();
      });
  if (!good)
    refuse_tensor(file, name,
                  "{} is {}, expected a list of integers from 0 to 2^63 - 1",
                  key, shown(list));
  return list.get<std::vector<Index>>();
}

StoredTensor parse_tensor(const path& file, const std::string& name,
                          const json& tensor) {
  if (!tensor.is_object())
    refuse_tensor(file, name,
                  "is {}, expected an object with dtype, shape, data_offsets",
                  shown(tensor));
  const json& dtype = member(file, name, tensor, "dtype");
  if (!dtype.is_string())
    refuse_tensor(file, name, "dtype is {}, expected a string", shown(dtype));
  const std::vector<Index> offsets =
      integers(file, name, tensor, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse_tensor(file, name,
                  "data_offsets is {}, expected [begin, end], begin <= end",
                  to_string(offsets));
  return {.dtype = dtype.get<std::string>(),
          .shape = integers(file, name, tensor, "shape"),
          .begin = static_cast<std::uint64_t>(offsets[0]),
          .end = static_cast<std::uint64_t>(offsets[1])};
}

void check_size(const path& file, const std::string& name,
                const StoredTensor& tensor) {
  const std::optional<std::uint64_t> bits = bits_of(tensor.dtype);
  if (!bits) return;
  const std::optional<std::uint64_t> size = storage_size(tensor.shape, *bits);
  if (!size)
    refuse_tensor(file, name, "shape {} of {} takes more than 2^64 bits",
                  to_string(tensor.shape), tensor.dtype);
  const std::uint64_t given = tensor.end - tensor.begin;
  if (*size % 8 != 0 || *size / 8 != given)
    refuse_tensor(file, name,
                  "shape {} of {} takes {} bits, data_offsets [{}, {}] give "
                  "{} bytes",
                  to_string(tensor.shape), tensor.dtype, *size, tensor.begin,
                  tensor.end, given);
}

void check_metadata(const path& file, const json& metadata) {
  const bool good = metadata.is_object() &&
                    std::all_of(metadata.begin(), metadata.end(),
                                [](const json& v) { return v.is_string(); });
  if (!good)
    refuse_header(file, "__metadata__ is {}, expected strings by name",
                  shown(metadata));
}

// The tensors cover the data once: in order of place, each begins where the one
// before ended, and the last ends where the file does.
void check_cover(const path& file, const StoredTensors& tensors,
                 std::uint64_t data_size) {
  std::vector<const StoredTensors::value_type*> by_place;
  for (const auto& entry : tensors) by_place.push_back(&entry);
  // by end as well: an empty tensor goes before the one that begins there
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) <
           std::pair(b->second.begin, b->second.end);
  });

  std::uint64_t covered = 0;
  std::string_view before;
  for (const auto* entry : by_place) {
    const auto& [name, tensor] = *entry;
    if (tensor.begin < covered)
      refuse_tensor(file, name,
                    "begins at byte {} of the data, within tensor {}, which "
                    "ends at {}",
                    tensor.begin, printable(before), covered);
    if (tensor.begin > covered)
      refuse_tensor(file, name,
                    "begins at byte {} of the data, and bytes {} to {} belong "
                    "to no tensor",
                    tensor.begin, covered, tensor.begin);
    if (tensor.end > data_size)
      refuse_tensor(file, name,
                    "ends at byte {} of the data, the file holds {}; it may "
                    "have been cut short",
                    tensor.end, data_size);
    covered = tensor.end;
    before = name;
  }
  if (covered != data_size)
    throw InputError(fmt::format(
        "{}: {} bytes of data, the tensors take {}: {} bytes too many",
        file.string(), data_size, covered, data_size - covered));
}

}  // namespace

StoredTensors parse_safetensors_header(const path& file,
                                       std::string_view header,
                                       std::uint64_t data_size) {
  StoredTensors tensors;
  const json parsed = parse_header_json(file, header);
  for (const auto& [name, value] : parsed.items()) {
    if (name == "__metadata__") {
      check_metadata(file, value);
      continue;
    }
    const StoredTensor tensor = parse_tensor(file, name, value);
    check_size(file, name, tensor);
    tensors.emplace(name, tensor);
  }
  check_cover(file, tensors, data_size);
  return tensors;
}

}  // namespace lipscope
