#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope {

/// Records as comma-separated values [RFC4180]: one header, one line for each
/// record, CRLF at every end. All fields that are scalars in some record have a
/// column, in the order in which they are first met; those of an object inside
/// a record are called "details.ratio"; lists are left out. Numbers have all
/// their digits; what is absent is empty.
std::string csv(const std::vector<nlohmann::ordered_json>& records);

}  // namespace lipscope
