#pragma once

#include "lipscope/cli/record.h"
#include "lipscope/spectral/estimate.h"

/// What the commands that measure at given tokens write into their records.
namespace lipscope::cli {

/// The question at these tokens: their number and size.
Record at_input(Record question, const Matrix& x, Index sample);

/// Fills in the answer and returns the witness.
Vector answer(Record& record, const Measurement& measurement);

}  // namespace lipscope::cli
