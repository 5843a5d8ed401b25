#pragma once

#include "lipscope/audit/measure.h"
#include "options.h"

namespace lipscope::python {

/// The request that these keyword arguments of `measure` make.
void read_request(const Options& options, audit::MeasureRequest& request);

/// What a run found, for Python: rows and fits as lines of JSON, and the
/// finding in words.
nb::dict found_in(const std::vector<nlohmann::ordered_json>& rows,
                  const std::vector<nlohmann::ordered_json>& fits,
                  const std::string& finding);

}  // namespace lipscope::python
