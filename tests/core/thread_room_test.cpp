#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "lipscope/core/gemm.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/thread_scratch.h"

namespace lipscope {
namespace thread_room_test {

TEST(ThreadRoom, IsKeptForTheNextCallAndGrows) {
  void* small = thread_scratch(Scratch::left_panels, 100);
  std::memset(small, 7, 100);
  EXPECT_EQ(thread_scratch(Scratch::left_panels, 60), small);
  void* large = thread_scratch(Scratch::left_panels, 1 << 20);
  std::memset(large, 7, 1 << 20);
  EXPECT_EQ(thread_scratch(Scratch::left_panels, 100), large);
  for (const void* room : {small, large})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0u);
}

TEST(ThreadRoom, IsOfOneThreadAndOneName) {
  void* mine = thread_scratch(Scratch::left_panels, 64);
  EXPECT_NE(thread_scratch(Scratch::left_tiles, 64), mine);
  EXPECT_NE(thread_scratch(Scratch::right_factor, 64), mine);
  void* other = nullptr;
  std::thread([&] { other = thread_scratch(Scratch::left_panels, 64); }).join();
  EXPECT_NE(other, mine);
}

// the thread_local bytes of this program, in which the library is linked
std::size_t thread_local_bytes() {
  std::size_t bytes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        // the program itself has no name
        if (info->dlpi_name[0] != '\0') return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_TLS)
            *static_cast<std::size_t*>(found) = info->dlpi_phdr[i].p_memsz;
        return 0;
      },
      &bytes);
  return bytes;
}

// A library that is loaded at run time shares some 1.6 KB of such memory with
// all others.
TEST(ThreadRoom, LeavesTheThreadLocalStoreToOthers) {
  // so that the products are linked
  const Matrix a = gaussian(3, 4, Rng(1)), b = gaussian(4, 5, Rng(2));
  EXPECT_EQ(product(as_is(a), RightFactor<double>(as_is(b)), 1).cols(), 5);
  const std::size_t bytes = thread_local_bytes();
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(bytes, 1024u);
}

}  // namespace thread_room_test
}  // namespace lipscope
