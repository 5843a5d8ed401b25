#pragma once

#include "lipscope/cli/record.h"
#include "lipscope/cli/selection.h"
#include "lipscope/spectral/estimate.h"

/// What the commands that measure at given tokens write into their records.
namespace lipscope::cli {

/// What a command asks of every input: which map of which weights, in which
/// norm.
Record question_about(const std::string& command, const Subject& subject,
                      const Selection& selection);

/// The question at these tokens: their number and size.
Record at_input(Record question, const Matrix& x, Index sample);

/// Fills in the answer and returns the witness.
Vector answer(Record& record, const Measurement& measurement);

}  // namespace lipscope::cli
