#include "lipscope/core/number_text.h"

#include <charconv>
#include <cmath>

namespace lipscope {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> whole_number_in(std::string_view text) {
  return number_in<std::int64_t>(text);
}

std::optional<std::uint64_t> natural_number_in(std::string_view text) {
  return number_in<std::uint64_t>(text);
}

std::optional<double> finite_number_in(std::string_view text) {
  const std::optional<double> value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace lipscope
