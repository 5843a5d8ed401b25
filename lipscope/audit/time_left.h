#pragma once

#include <map>
#include <optional>

namespace lipscope::audit {

/// Estimates how long the rest of a run takes. Work is counted in any unit that
/// is about proportional to time, the same for all kinds of it. What is left of
/// a kind takes as long for each unit as the part of this kind that is done;
/// where none of it is done, as all work so far.
class TimeLeft {
 public:
  enum class Kind { pass, measurement };

  /// What is being done now, and is not counted as done yet: so much of it in
  /// so many seconds.
  struct Now {
    Kind kind = Kind::measurement;
    double work = 0.0, seconds = 0.0;
  };

  void expect(Kind kind, double work);
  void done(Kind kind, double work, double seconds);

  /// Whether work of this kind is done, so that its speed is known.
  bool knows(Kind kind) const;

  /// Seconds from now on; nothing as long as nothing is done, not even in part.
  std::optional<double> seconds(const Now& now) const;

 private:
  struct Amount {
    double expected = 0.0, done = 0.0, seconds = 0.0;
  };
  std::map<Kind, Amount> amounts_;
};

}  // namespace lipscope::audit
