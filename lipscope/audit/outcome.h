#pragma once

namespace lipscope::audit {

/// How a run ended; what it found is in its records.
struct Outcome {
  /// All that was asked for was done, and all of it converged.
  bool converged = true;
  /// What the forward passes to the inputs took; 0 where there was none.
  double input_seconds = 0.0;
};

}  // namespace lipscope::audit
