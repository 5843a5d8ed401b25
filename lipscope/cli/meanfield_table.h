#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope::cli {

/// The records of `meanfield` for people. `quiet` leaves out what the lines
/// mean.
std::string meanfield_table(const std::vector<nlohmann::ordered_json>& records,
                            bool quiet);

}  // namespace lipscope::cli
