#include "lipscope/core/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace memory_test {

TEST(Memory, IsWrittenAsPeopleDo) {
  EXPECT_EQ(bytes_text(17), "17 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(6.44e9), "6.4 GB");
  EXPECT_EQ(bytes_text(512e6), "512 MB");
  EXPECT_EQ(bytes_text(999.9e6), "1 GB");
  EXPECT_EQ(bytes_text(1.5e13), "15 TB");
  EXPECT_EQ(bytes_text(2e21), "2e+06 PB");
}

TEST(Memory, IsRefusedWithBothNumbers) {
  EXPECT_NO_THROW(require_memory(1e6, "little"));
  try {
    require_memory(1e18, "--length 9: nine tokens");
    FAIL();
  } catch (const InputError& refused) {
    const std::string message = refused.what();
    EXPECT_TRUE(message.starts_with(
        "--length 9: nine tokens needs about 1e+03 PB, and "))
        << message;
    EXPECT_TRUE(message.ends_with(" are free")) << message;
  }
}

TEST(Memory, IsSomethingOnThisMachine) {
  EXPECT_GT(available_memory(), 1e6);
  EXPECT_TRUE(std::isfinite(available_memory()));
}

// in a process of its own, whose limit is lowered
TEST(Memory, KnowsTheLimitOnAddresses) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs more addresses than any limit";
#endif
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{rlim_t{1} << 40, rlim_t{1} << 40};
    setrlimit(RLIMIT_AS, &limit);
    const bool below_it = available_memory() < 0x1p40;
    const rlimit lower{rlim_t{3} << 28, rlim_t{3} << 28};
    setrlimit(RLIMIT_AS, &lower);
    _exit(below_it && available_memory() < 0x3p28 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace memory_test
}  // namespace lipscope
