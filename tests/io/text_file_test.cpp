#include "lipscope/io/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace text_file_test {

class TextFileTest : public testing::Test {
 protected:
  std::string refusal(const std::filesystem::path& path,
                      std::uint64_t most = largest_text) const {
    return test::message_of<InputError>([&] { read_text_file(path, most); });
  }

  const test::TemporaryFolder folder;
};

TEST_F(TextFileTest, HoldsWhatTheFileHolds) {
  for (const std::string& text :
       {std::string(), std::string("a\0b\xff", 4), std::string(200'000, 'x')}) {
    test::write_file(folder / "a", text);
    EXPECT_EQ(read_text_file(folder / "a"), text);
  }
}

// the kernel says that its files are empty
TEST_F(TextFileTest, ReadsToTheEndAndNotToTheSize) {
  EXPECT_NE(read_text_file("/proc/self/status"), "");
}

TEST_F(TextFileTest, RefusesWhatIsTooLargeWithBothNumbers) {
  test::write_file(folder / "a", "12345");
  EXPECT_EQ(read_text_file(folder / "a", 5), "12345");
  EXPECT_TRUE(
      test::says(refusal(folder / "a", 4), {"/a: 5 bytes", "at most 4"}));
  // a terabyte that takes no room on the disk
  std::filesystem::resize_file(folder / "a", std::uintmax_t{1} << 40);
  EXPECT_TRUE(test::says(refusal(folder / "a"),
                         {"1099511627776 bytes", "at most 1073741824"}));
  EXPECT_TRUE(test::says(refusal("/proc/self/status", 10), {"at most 10"}));
}

TEST_F(TextFileTest, RefusesWhatMayNeverBeginOrEnd) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(test::says(refusal(folder / "pipe"), {"/pipe", "a pipe"}));
  EXPECT_TRUE(test::says(refusal("/dev/zero"), {"/dev/zero", "a device"}));
  EXPECT_TRUE(test::says(refusal(folder / ""), {"a folder"}));
  EXPECT_TRUE(test::says(refusal(folder / "none"), {"/none", "No such file"}));
}

}  // namespace text_file_test
}  // namespace lipscope
