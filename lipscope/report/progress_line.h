#pragma once

#include <cstddef>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// What a progress bar says.
struct ProgressText {
  Index done = 0, total = 0;  ///< jobs
  std::string doing;          ///< the least important part last, after a comma
  std::string left;           ///< "45 s left", or nothing
  double share = 0.0;         ///< of the time, 0 to 1
};

/// One line that is narrower than the terminal, as a second one could not be
/// taken away again:
///
///   [######......] 2/9 n = 128, layer 4, step 20 of at most 300, 45 s left
///
/// What does not fit is left out: half of the bar, then all of it, then the end
/// of what is being done; the time that is left stays. Empty where not even
/// that fits.
std::string progress_line(const ProgressText& text, std::size_t width);

}  // namespace lipscope
