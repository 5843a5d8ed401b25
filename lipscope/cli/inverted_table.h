#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of `invert` as tables for people: one line for each inversion,
/// how the first went on from iteration to iteration, the volumes where they
/// were asked for, and unless quiet what the columns mean.
std::string inverted_table(const std::vector<nlohmann::ordered_json>& records,
                           const View& view);

}  // namespace lipscope::cli
