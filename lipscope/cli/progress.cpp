#include "lipscope/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

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

Progress::Progress(Index total, bool quiet)
    : total_(total),
      visible_(!quiet && isatty(STDERR_FILENO)),
      start_(Clock::now()),
      last_(start_ - std::chrono::hours(1)),
      job_start_(start_) {
  watch_for_interrupts();
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

void Progress::show(Index done, const std::string& doing) {
  const std::string left =
      done == 0
          ? ""
          : ", " +
                duration(seconds_since(start_) / static_cast<double>(done) *
                         static_cast<double>(total_ - done)) +
                " left";
  draw(static_cast<double>(done), doing, left);
}

void Progress::show(Index done, const std::string& doing, Index step,
                    Index most) {
  if (job_ != done || step < first_step_) {
    job_ = done;
    first_step_ = step;
    job_start_ = Clock::now();
  }
  const auto steps = static_cast<double>(step - first_step_);
  const double jobs = static_cast<double>(total_ - done);
  std::string left;
  // jobs that are done say how long one takes; in the first one only its own
  // steps do, of which there may be fewer in the end
  if (done > 0)
    left = fmt::format(", {} left", duration(seconds_since(start_) /
                                             static_cast<double>(done) * jobs));
  else if (steps > 0)
    left = fmt::format(", at most {} left",
                       duration(seconds_since(job_start_) / steps *
                                (static_cast<double>(most - step) +
                                 (jobs - 1) * static_cast<double>(most))));
  draw(static_cast<double>(done) +
           static_cast<double>(step) / static_cast<double>(most + 1),
       fmt::format("{}, step {} of at most {}", doing, step, most), left);
}

void Progress::draw(double done, const std::string& doing,
                    const std::string& left) {
  if (interrupted())
    throw Interrupted(fmt::format("interrupted at {} of {} ({})",
                                  static_cast<Index>(done), total_, doing));
  if (!visible_) return;
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;

  constexpr int bar = 24;
  const int filled = std::clamp(
      static_cast<int>(bar * done /
                       static_cast<double>(std::max<Index>(1, total_))),
      0, bar);
  // one line of the terminal: a second could not be taken away again
  const std::size_t width = screen_width(STDERR_FILENO);
  std::string text = visible_line(
      fmt::format("{}/{} {}{}", static_cast<Index>(done), total_, doing, left));
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
