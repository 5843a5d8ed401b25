#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/audit/certify.h"
#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// The records of `certify` as tables for people: how far predictions hold, by
/// quantiles of the positions, and how many hold at each radius; the model's
/// constant above them, and unless quiet what the columns mean.
std::string certified_table(const std::vector<nlohmann::ordered_json>& records,
                            const std::vector<double>& radii,
                            const StackConstant& constant, const View& view);

}  // namespace lipscope::cli
