#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Numbers as people write them: no NaN, no infinity, nothing left over behind
/// the number, no sign where none belongs.
namespace lipscope {

/// Nothing unless the text is such a number from end to end.
std::optional<std::int64_t> whole_number_in(std::string_view text);
std::optional<std::uint64_t> natural_number_in(std::string_view text);
std::optional<double> finite_number_in(std::string_view text);

}  // namespace lipscope
