#pragma once

#include <chrono>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope::cli {

/// A bar on standard error: drawn if that is a terminal, silent otherwise. It
/// is also where a command notices that it was interrupted: show then throws
/// Interrupted.
class Progress {
 public:
  Progress(Index total, bool quiet);
  ~Progress();

  /// So many of all jobs are done, and this is being done now.
  void show(Index done, const std::string& doing);

  /// The same within a long job: step number `step` of at most `most`.
  void show(Index done, const std::string& doing, Index step, Index most);

  /// Takes the bar away, for a line that is to stand there; the next show draws
  /// it again.
  void clear();

 private:
  void draw(double done, const std::string& doing, const std::string& left);

  Index total_;
  bool visible_;
  bool drawn_ = false;
  Index job_ = -1;  // whose steps are being counted
  Index first_step_ = 0;
  std::chrono::steady_clock::time_point start_, last_, job_start_;
};

}  // namespace lipscope::cli
