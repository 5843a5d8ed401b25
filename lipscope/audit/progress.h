#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lipscope/core/matrix.h"

namespace lipscope::audit {

/// What a long run is doing.
struct Work {
  Index done = 0, total = 0;  ///< jobs
  std::string doing;          ///< the job that is being done now
  /// Where that is a long one: step number `step` of at most `most`.
  Index step = 0, most = 0;
  /// An estimate for all that is left, where the run makes one.
  std::optional<double> seconds_left = {};
  bool at_most = false;  ///< whether it is more likely too long than too short
  bool more = false;     ///< these jobs are not all: others follow
};

/// Who watches a run. Either may be empty. A run is ended by an exception that
/// `working` throws: what was written stays, and the exception goes to who
/// called.
struct Watch {
  std::function<void(const Work&)> working = {};
  std::function<void(const std::string&)> note = {};  ///< a line for people
};

/// A run with so many jobs tells who watches.
class Progress {
 public:
  Progress(Watch watch, Index total)
      : watch_(std::move(watch)), total_(total) {}

  void show(Index done, const std::string& doing, Index step = 0,
            Index most = 0) const {
    show(Work{
        .done = done, .total = 0, .doing = doing, .step = step, .most = most});
  }
  /// The same with all that is known of the work but the total.
  void show(Work work) const {
    work.total = total_;
    if (watch_.working) watch_.working(work);
  }
  void note(const std::string& line) const {
    if (watch_.note && !line.empty()) watch_.note(line);
  }

 private:
  Watch watch_;
  Index total_;
};

}  // namespace lipscope::audit
