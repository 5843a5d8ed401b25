#include "lipscope/core/stop.h"

#include <gtest/gtest.h>

#include "lipscope/core/parallel.h"

namespace lipscope {
namespace stop_test {

// how many tasks ran before the flag, which task 5 sets, ended the work
int tasks_run(int threads, bool watched) {
  std::atomic<bool> flag = false;
  std::atomic<int> done = 0;
  const StopWhen told(watched ? &flag : nullptr);
  const auto work = [&] {
    parallel_for(1000, threads, [&](Index i) {
      ++done;
      if (i == 5) flag = true;
    });
  };
  if (watched)
    EXPECT_THROW(work(), Stopped);
  else
    work();
  return done;
}

TEST(StopWhen, EndsWorkOnAllThreadsSoonAfterItsFlag) {
  EXPECT_EQ(tasks_run(1, true), 6);
  EXPECT_LT(tasks_run(2, true), 1000);
  EXPECT_EQ(tasks_run(2, false), 1000);
}

// A task asks before each of its own tasks, on whichever thread it runs.
TEST(StopWhen, ReachesWorkInsideOfTasks) {
  std::atomic<bool> flag = false;
  std::atomic<int> inner = 0;
  const StopWhen told(&flag);
  EXPECT_THROW(parallel_for(2, 2,
                            [&](Index) {
                              parallel_for(1000, 1, [&](Index i) {
                                ++inner;
                                if (i == 5) flag = true;
                              });
                            }),
               Stopped);
  EXPECT_LT(inner, 2000);
}

TEST(StopWhen, IsForgottenWhereItEnds) {
  std::atomic<bool> flag = true;
  {
    const StopWhen told(&flag);
    EXPECT_THROW(check_stop(), Stopped);
  }
  EXPECT_NO_THROW(check_stop());
}

}  // namespace stop_test
}  // namespace lipscope
