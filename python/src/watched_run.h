#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>

#include "lipscope/audit/progress.h"

namespace lipscope::python {

namespace nb = nanobind;

/// Does the work on a thread of its own, while this one, with the GIL released,
/// looks every twentieth of a second whether a signal has come, and tells
/// `progress` (None, or a function of done, total, doing, step and most) how
/// far the work is. Ctrl-C, or an exception of `progress`, sets `stop`, and is
/// raised when the work has ended, which should be soon then. The work must not
/// touch Python.
///
/// A thread of its own: signal handlers of Python run on the main thread alone,
/// which must not be busy then.
using WatchedWork = std::function<void(const audit::Watch& watch,
                                       const std::atomic<bool>& stop)>;
void watched_run(nb::handle progress, const WatchedWork& work);

}  // namespace lipscope::python
