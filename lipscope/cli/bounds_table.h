#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of `bound` for people: every bound, or the best of each question
/// where they are many, and after them the witnesses of a map that is not
/// Lipschitz. A quiet view leaves out what the columns mean.
std::string bounds_table(const std::vector<nlohmann::ordered_json>& records,
                         const View& view);

}  // namespace lipscope::cli
