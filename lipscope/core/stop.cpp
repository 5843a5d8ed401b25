#include "lipscope/core/stop.h"

#include <utility>

namespace lipscope {
namespace {

thread_local const std::atomic<bool>* flag_of_this_thread = nullptr;

}  // namespace

StopWhen::StopWhen(const std::atomic<bool>* flag)
    : before_(std::exchange(flag_of_this_thread, flag)) {}

StopWhen::~StopWhen() { flag_of_this_thread = before_; }

const std::atomic<bool>* stop_flag() { return flag_of_this_thread; }

void check_stop() {
  if (flag_of_this_thread &&
      flag_of_this_thread->load(std::memory_order_relaxed))
    throw Stopped();
}

}  // namespace lipscope
