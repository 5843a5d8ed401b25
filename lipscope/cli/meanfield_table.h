#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of `meanfield` for people. A quiet view leaves out what the
/// lines mean.
std::string meanfield_table(const std::vector<nlohmann::ordered_json>& records,
                            const View& view);

}  // namespace lipscope::cli
