#pragma once

#include <functional>
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
    if (watch_.working) watch_.working({done, total_, doing, step, most});
  }
  void note(const std::string& line) const {
    if (watch_.note && !line.empty()) watch_.note(line);
  }

 private:
  Watch watch_;
  Index total_;
};

}  // namespace lipscope::audit
