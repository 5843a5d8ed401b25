#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The growth fits that follow a sweep of `measure` or `reproduce`; nothing
/// where there are none.
std::string growth_table(const std::vector<nlohmann::ordered_json>& fits,
                         const View& view);

}  // namespace lipscope::cli
