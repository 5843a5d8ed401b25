#include "lipscope/cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/report/progress_line.h"

namespace lipscope::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// "45 s", "3 min", "2.5 h"
std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

ProgressBar::ProgressBar(bool quiet)
    : quiet_(quiet),
      visible_(!quiet && isatty(STDERR_FILENO)),
      start_(Clock::now()),
      last_(start_ - std::chrono::hours(1)),
      job_start_(start_) {
  watch_for_interrupts();
}

ProgressBar::~ProgressBar() { clear(); }

audit::Watch ProgressBar::watch() {
  audit::Watch watch;
  watch.working = [this](const audit::Work& work) { show(work); };
  if (!quiet_) watch.note = print_note;
  return watch;
}

void ProgressBar::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

void ProgressBar::show(const audit::Work& w) {
  // another list of jobs begins
  if (w.total != total_) {
    total_ = w.total;
    job_ = -1;
    start_ = Clock::now();
  }
  if (job_ != w.done || w.step < first_step_) {
    job_ = w.done;
    first_step_ = w.step;
    job_start_ = Clock::now();
  }
  const auto real = [](Index n) { return static_cast<double>(n); };
  const double jobs = real(w.total - w.done),
               steps = real(w.step - first_step_);
  std::optional<double> left = w.seconds_left;
  bool at_most = w.at_most;
  // where the run makes no estimate: jobs that are done say how long one takes;
  // in the first one only its own steps do, of which there may be fewer in the
  // end
  if (!left && w.done > 0) {
    left = seconds_since(start_) / real(w.done) * jobs;
  } else if (!left && w.step > 0 && steps > 0) {
    left = seconds_since(job_start_) / steps *
           (real(w.most - w.step) + (jobs - 1) * real(w.most));
    at_most = true;
  }
  double share =
      (real(w.done) + (w.step == 0 ? 0.0 : real(w.step) / real(w.most + 1))) /
      std::max(1.0, real(w.total));
  // jobs are not all alike: time is what a bar shows best
  if (w.seconds_left && seconds_since(start_) > 0.0)
    share = seconds_since(start_) / (seconds_since(start_) + *left);
  draw(w, share,
       left ? fmt::format("{}{} left{}", at_most ? "at most " : "",
                          duration(*left), w.more ? " of this" : "")
            : "");
}

void ProgressBar::draw(const audit::Work& work, double share,
                       const std::string& left) {
  const std::string doing = work.step == 0
                                ? work.doing
                                : fmt::format("{}, step {} of at most {}",
                                              work.doing, work.step, work.most);
  if (interrupted())
    throw Interrupted(fmt::format("interrupted at {} of {} ({})", work.done,
                                  work.total, doing));
  if (!visible_) return;
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  const std::string line = progress_line({.done = work.done,
                                          .total = work.total,
                                          .doing = visible_line(doing),
                                          .left = left,
                                          .share = share},
                                         screen_width(STDERR_FILENO));
  if (!line.empty()) fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace lipscope::cli
