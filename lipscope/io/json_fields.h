#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lipscope/core/matrix.h"

/// What a field of a line of JSON holds: nothing where it is absent or holds
/// something of another kind.
namespace lipscope {

std::optional<double> number_in(const nlohmann::ordered_json& line,
                                const char* field);
std::optional<Index> whole_number_in(const nlohmann::ordered_json& line,
                                     const char* field);
std::string text_in(const nlohmann::ordered_json& line, const char* field,
                    const char* otherwise = "");

}  // namespace lipscope
