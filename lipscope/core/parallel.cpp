#include "lipscope/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "lipscope/core/errors.h"
#include "lipscope/core/stop.h"

namespace lipscope {

int thread_count(int threads) {
  require(threads >= 0, "threads: {} is negative; 0 means all cores", threads);
  return threads == 0 ? std::max(1, omp_get_num_procs()) : threads;
}

void parallel_for(Index count, int threads,
                  const std::function<void(Index)>& task) {
  const int team = static_cast<int>(
      std::min<Index>(count, omp_in_parallel() ? 1 : thread_count(threads)));
  if (team <= 1) {
    for (Index i = 0; i < count; ++i) {
      check_stop();
      task(i);
    }
    return;
  }

  std::exception_ptr first;
  std::atomic<bool> failed = false;
  const std::atomic<bool>* const stop = stop_flag();
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
  for (Index i = 0; i < count; ++i) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      const StopWhen here(stop);
      check_stop();
      task(i);
    } catch (...) {
#pragma omp critical(lipscope_parallel_for)
      if (!first) first = std::current_exception();
      failed = true;
    }
  }
  if (first) std::rethrow_exception(first);
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}

OneThread::~OneThread() { omp_set_num_threads(before_); }

}  // namespace lipscope
