#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope::cli {

/// The records of `invert` as tables for people: one line for each inversion,
/// how the first went on from iteration to iteration, the volumes where they
/// were asked for, and unless quiet what the columns mean.
std::string inverted_table(const std::vector<nlohmann::ordered_json>& records,
                           bool quiet);

}  // namespace lipscope::cli
