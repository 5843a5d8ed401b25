#include "watched_run.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "lipscope/core/stop.h"

namespace lipscope::python {

void watched_run(nb::handle progress, const WatchedWork& work) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false, news = false;
  audit::Work latest;
  std::exception_ptr failure;
  std::atomic<bool> stop = false;

  audit::Watch watch;
  watch.working = [&](const audit::Work& now) {
    check_stop();
    const std::scoped_lock lock(mutex);
    latest = now;
    news = true;
  };
  std::thread worker([&] {
    try {
      work(watch, stop);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    done = true;
    ended.notify_one();
  });

  // what is raised here: by a signal handler or by `progress`
  std::exception_ptr raised;
  for (bool over = false; !over;) {
    audit::Work now;
    bool fresh = false;
    {
      const nb::gil_scoped_release free;
      std::unique_lock lock(mutex);
      over = ended.wait_for(lock, std::chrono::milliseconds(50),
                            [&] { return done; });
      std::swap(fresh, news);
      now = latest;
    }
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (fresh && !progress.is_none())
        progress(now.done, now.total, now.doing, now.step, now.most);
    } catch (...) {
      raised = std::current_exception();
      stop = true;
    }
  }
  {
    const nb::gil_scoped_release free;
    worker.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lipscope::python
