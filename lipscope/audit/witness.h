#pragma once

#include <cstddef>
#include <functional>

#include "lipscope/core/matrix.h"

namespace lipscope::audit {

/// The arrays behind a row of the records, each [n×d]; empty where the command
/// has none.
struct Witness {
  std::size_t row = 0;  ///< of Records::rows
  Matrix direction = {}, input = {};
};

/// Called with the witness of the row that was added last, on one thread at a
/// time.
using TakeWitness = std::function<void(Witness witness)>;

}  // namespace lipscope::audit
