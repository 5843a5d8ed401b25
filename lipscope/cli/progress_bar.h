#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "lipscope/audit/progress.h"

namespace lipscope::cli {

/// A bar on standard error: drawn if that is a terminal, silent otherwise. It
/// is also where a command notices that it was interrupted: show then throws
/// Interrupted.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const audit::Work& work);

  /// Takes the bar away, for a line that is to stand there; the next show draws
  /// it again.
  void clear();

  /// What the library is given: it shows the work here and, unless quiet,
  /// prints notes on standard error. Borrows this bar, which must outlive it.
  audit::Watch watch();

 private:
  void draw(const audit::Work& work, double share, const std::string& left);

  bool quiet_;
  bool visible_;
  bool drawn_ = false;
  Index total_ = -1;  // of the list of jobs that is being done
  Index job_ = -1;    // whose steps are being counted
  Index first_step_ = 0;
  std::chrono::steady_clock::time_point start_, last_, job_start_;
};

}  // namespace lipscope::cli
