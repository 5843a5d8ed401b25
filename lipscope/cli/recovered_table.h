#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope::cli {

/// The records of texts recovered from activations, as a person reads them: a
/// line for each passage, the blocks of the first, and the texts.
std::string recovered_table(const std::vector<nlohmann::ordered_json>& records,
                            bool quiet);

}  // namespace lipscope::cli
