#pragma once

namespace lipscope::audit {

/// How a run ended; what it found is in its records.
struct Outcome {
  /// All that was asked for was done, and all of it converged.
  bool converged = true;
};

}  // namespace lipscope::audit
