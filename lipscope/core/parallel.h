#pragma once

#include <functional>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// How many threads a request for `threads` means; 0 asks for all cores.
int thread_count(int threads);

/// Calls task(0), …, task(count − 1), each once, on the given number of threads
/// (0: all cores). The pieces, not the threads, decide what is computed, so the
/// result does not depend on how many threads there are. The first exception of
/// a task is thrown on after all threads have stopped.
///
/// Calls do not nest: a task that calls parallel_for runs it on its own thread.
void parallel_for(Index count, int threads,
                  const std::function<void(Index)>& task);

/// Makes libraries that thread by themselves stay on the calling thread for as
/// long as it lives: one product per thread, or one threaded loop, never both.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace lipscope
