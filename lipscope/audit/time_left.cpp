#include "lipscope/audit/time_left.h"

#include <algorithm>

namespace lipscope::audit {

void TimeLeft::expect(Kind kind, double work) {
  amounts_[kind].expected += work;
}

void TimeLeft::done(Kind kind, double work, double seconds) {
  amounts_[kind].done += work;
  amounts_[kind].seconds += seconds;
}

bool TimeLeft::knows(Kind kind) const {
  const auto found = amounts_.find(kind);
  return found != amounts_.end() && found->second.done > 0.0;
}

std::optional<double> TimeLeft::seconds(const Now& now) const {
  double all_work = now.work, all_seconds = now.work > 0.0 ? now.seconds : 0.0;
  for (const auto& [kind, amount] : amounts_) {
    all_work += amount.done;
    all_seconds += amount.seconds;
  }
  if (all_work <= 0.0) return std::nullopt;
  double left = 0.0;
  for (const auto& [kind, amount] : amounts_) {
    double seconds_a_unit = all_seconds / all_work;
    if (amount.done > 0.0)
      seconds_a_unit = amount.seconds / amount.done;
    else if (kind == now.kind && now.work > 0.0)
      seconds_a_unit = now.seconds / now.work;
    left += std::max(0.0, amount.expected - amount.done) * seconds_a_unit;
  }
  // of what is left, this much was spent already
  return std::max(0.0, left - now.seconds);
}

}  // namespace lipscope::audit
