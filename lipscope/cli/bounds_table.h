#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope::cli {

/// The records of `bound` for people: every bound, or the best of each question
/// where they are many, and after them the witnesses of a map that is not
/// Lipschitz. `quiet` leaves out what the columns mean.
std::string bounds_table(const std::vector<nlohmann::ordered_json>& records,
                         bool quiet);

}  // namespace lipscope::cli
