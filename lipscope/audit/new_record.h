#pragma once

#include "lipscope/audit/selection.h"
#include "lipscope/record/record.h"
#include "lipscope/spectral/estimate.h"

namespace lipscope::audit {

/// The beginning of every record of a command on a subject: which map of which
/// weights, in which norm, with what config.json and the options of the weights
/// add to them. Layer, head, tokens and mask are still to be said.
Record new_record(const std::string& command, const Subject& subject,
                  const Selection& selection, std::uint64_t seed);

/// What tokens see, of a record whose layer and n are known.
void set_mask(const Selection& selection, Record& record);

/// How a norm is measured, for the key of a record whose n and d are known.
void set_solver(const MeasureOptions& options, Record& record);

}  // namespace lipscope::audit
