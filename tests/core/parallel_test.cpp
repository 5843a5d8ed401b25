#include "lipscope/core/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace lipscope {
namespace parallel_test {

TEST(ParallelFor, CallsEveryTaskOnce) {
  std::vector<std::atomic<int>> calls(1000);
  parallel_for(1000, 2, [&](Index i) { ++calls[i]; });
  for (const auto& c : calls) EXPECT_EQ(c, 1);
}

TEST(ParallelFor, ThrowsOnTheExceptionOfATask) {
  EXPECT_THROW(parallel_for(100, 2,
                            [](Index i) {
                              if (i == 17)
                                throw std::runtime_error("seventeen");
                            }),
               std::runtime_error);
}

TEST(ParallelFor, DoesNotNest) {
  std::atomic<int> widest = 0;
  parallel_for(2, 2, [&](Index) {
    parallel_for(4, 2, [&](Index) {
      widest = std::max<int>(widest, omp_get_active_level());
    });
  });
  EXPECT_LE(widest, 1);
}

TEST(ThreadCount, RefusesNegativeNumbers) {
  EXPECT_THROW(thread_count(-1), std::invalid_argument);
  EXPECT_GE(thread_count(0), 1);
  EXPECT_EQ(thread_count(3), 3);
}

TEST(OneThread, RestoresWhatWasThere) {
  const int before = omp_get_max_threads();
  {
    const OneThread guard;
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

}  // namespace parallel_test
}  // namespace lipscope
