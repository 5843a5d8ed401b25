#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of texts recovered from activations, as a person reads them: a
/// line for each passage, the blocks of the first, and the texts.
std::string recovered_table(const std::vector<nlohmann::ordered_json>& records,
                            const View& view);

}  // namespace lipscope::cli
