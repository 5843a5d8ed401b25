#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of `measure` for people: each by itself, or one line for each
/// length where they are many. A quiet view leaves out what the columns mean.
std::string measured_table(const std::vector<nlohmann::ordered_json>& records,
                           const View& view);

/// The growth fits that follow a sweep; nothing where there are none.
std::string growth_table(const std::vector<nlohmann::ordered_json>& fits,
                         const View& view);

}  // namespace lipscope::cli
