#pragma once

#include "lipscope/record/record.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/token_norm.h"
#include "lipscope/theory/bound.h"

/// How what was measured and what was proved is put into a record. There is one
/// rule for all commands: `upper` is absent where the bound does not fit into a
/// double, and `upper_log10` is absent where the bound is 0.
namespace lipscope {

/// The size of these tokens, which is found and not asked.
void set_radii(const Matrix& x, Record& record);

/// The measurement with all that it knows; returns the witness.
Vector set_measured(Record& record, const Measurement& measurement);
Vector set_measured(Record& record, const InfNorm& norm);
Vector set_measured(Record& record, const TokenNorm& norm);

/// The side below alone, with its evidence.
void set_lower(Record& record, const Measurement& measurement);

/// The side above, in place of what the record has there.
void set_upper(Record& record, double value, const KnownBy& by);
void set_upper(Record& record, const Bound& bound);

/// The same, unless the record has a smaller number there.
void lower_upper(Record& record, const Bound& bound);

}  // namespace lipscope
