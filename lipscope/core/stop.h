#pragma once

#include <atomic>

namespace lipscope {

/// Thrown out of work that was told to stop. It is no std::exception, so that
/// nobody who deals with errors on the way takes it for one.
struct Stopped {};

/// As long as it lives, the work of this thread ends with Stopped soon after
/// the flag became true: parallel_for asks before each of its tasks, on all of
/// its threads. A null pointer: the work of this thread is not stopped.
class StopWhen {
 public:
  explicit StopWhen(const std::atomic<bool>* flag);
  ~StopWhen();
  StopWhen(const StopWhen&) = delete;
  StopWhen& operator=(const StopWhen&) = delete;

 private:
  const std::atomic<bool>* before_;
};

/// The flag of this thread, or a null pointer.
const std::atomic<bool>* stop_flag();

/// Throws Stopped if this thread is told to stop.
void check_stop();

}  // namespace lipscope
