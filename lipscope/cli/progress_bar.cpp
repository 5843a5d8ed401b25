#include "lipscope/cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/report/wrap.h"

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
  if (job_ != w.done || w.step < first_step_) {
    job_ = w.done;
    first_step_ = w.step;
    job_start_ = Clock::now();
  }
  const auto real = [](Index n) { return static_cast<double>(n); };
  const double jobs = real(w.total - w.done),
               steps = real(w.step - first_step_);
  std::string left;
  // jobs that are done say how long one takes; in the first one only its own
  // steps do, of which there may be fewer in the end
  if (w.done > 0)
    left = fmt::format(", {} left",
                       duration(seconds_since(start_) / real(w.done) * jobs));
  else if (w.step > 0 && steps > 0)
    left = fmt::format(
        ", at most {} left",
        duration(seconds_since(job_start_) / steps *
                 (real(w.most - w.step) + (jobs - 1) * real(w.most))));
  if (w.step == 0)
    draw(w, real(w.done), w.doing, left);
  else
    draw(w, real(w.done) + real(w.step) / real(w.most + 1),
         fmt::format("{}, step {} of at most {}", w.doing, w.step, w.most),
         left);
}

void ProgressBar::draw(const audit::Work& work, double done,
                       const std::string& doing, const std::string& left) {
  const Index total = work.total;
  if (interrupted())
    throw Interrupted(
        fmt::format("interrupted at {} of {} ({})", work.done, total, doing));
  if (!visible_) return;
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;

  constexpr int bar = 24;
  const int filled = std::clamp(
      static_cast<int>(bar * done /
                       static_cast<double>(std::max<Index>(1, total))),
      0, bar);
  // one line of the terminal: a second could not be taken away again
  const std::size_t width = screen_width(STDERR_FILENO);
  std::string text = visible_line(
      fmt::format("{}/{} {}{}", static_cast<Index>(done), total, doing, left));
  const std::string drawing =
      fmt::format("[{:#>{}}{:.>{}}] ", "", filled, "", bar - filled);
  std::string line = drawing + text;
  if (display_width(line) >= width) line = text;
  while (display_width(line) >= width && line.find(',') != line.npos)
    line.resize(line.rfind(','));
  if (display_width(line) < width) fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace lipscope::cli
