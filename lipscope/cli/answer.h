#pragma once

#include "lipscope/cli/record.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/token_norm.h"

/// What the commands that measure at given tokens write into their records.
namespace lipscope::cli {

/// The size of these tokens, which is found and not asked.
void tell_radii(const Matrix& x, Record& record);

/// Fills in the answer and returns the witness.
Vector answer(Record& record, const Measurement& measurement);
Vector answer(Record& record, const InfNorm& norm);
Vector answer(Record& record, const TokenNorm& norm);

}  // namespace lipscope::cli
