#pragma once

#include "lipscope/cli/record.h"
#include "lipscope/cli/selection.h"

namespace lipscope::cli {

/// The beginning of every record of a command on a subject: which map of which
/// weights, in which norm, with what config.json and the options of the weights
/// add to them. Layer, head and tokens are still to be said.
Record question(const std::string& command, const Subject& subject,
                const Selection& selection, std::uint64_t seed);

}  // namespace lipscope::cli
