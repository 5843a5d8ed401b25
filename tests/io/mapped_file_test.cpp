#include "lipscope/io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace mapped_file_test {

std::string_view text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()),
          file.bytes().size()};
}

class MappedFileTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder;
};

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  test::write_file(folder / "a", "some bytes");
  EXPECT_EQ(text(MappedFile(folder / "a")), "some bytes");
}

// megabytes of mapped files that are resident
double resident_file_pages() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssFile:", 0) == 0) return std::stod(line.substr(8)) / 1024;
  ADD_FAILURE() << "the system does not say";
  return 0.0;
}

TEST_F(MappedFileTest, TakesNoMemoryForPagesThatAreReleased) {
  const std::string content = std::string(20 << 20, 'x') + "end";
  test::write_file(folder / "a", content);
  const MappedFile file(folder / "a");
  const double before = resident_file_pages();
  EXPECT_EQ(text(file), content);
  EXPECT_GT(resident_file_pages(), before + 15);
  release_pages(file.bytes().subspan(5000));  // from within a page
  EXPECT_LT(resident_file_pages(), before + 5);
  EXPECT_EQ(text(file), content);
}

TEST_F(MappedFileTest, HoldsNothingOfAnEmptyFile) {
  test::write_file(folder / "a", "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

TEST_F(MappedFileTest, KeepsItsBytesWhenMoved) {
  test::write_file(folder / "a", "one");
  test::write_file(folder / "b", "two");
  MappedFile a(folder / "a");
  MappedFile moved(std::move(a));
  EXPECT_EQ(text(moved), "one");
  moved = MappedFile(folder / "b");
  EXPECT_EQ(text(moved), "two");
}

TEST_F(MappedFileTest, KeepsItsBytesWhenAnotherFileTakesTheName) {
  test::write_file(folder / "a", "old");
  test::write_file(folder / "b", "new");
  const MappedFile file(folder / "a");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(text(file), "old");
}

TEST_F(MappedFileTest, RefusesWhatIsNotAFileByItsKind) {
  // a pipe that nobody writes to must not be waited for
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto refusal = [](const std::filesystem::path& path) {
    return test::message_of<InputError>([&] { MappedFile file(path); });
  };
  EXPECT_TRUE(test::says(refusal(folder / "absent"), {"absent", "No such"}));
  EXPECT_TRUE(test::says(refusal(folder.path()), {"a folder"}));
  EXPECT_TRUE(test::says(refusal(folder / "pipe"), {"pipe"}));
  EXPECT_TRUE(test::says(refusal("/dev/zero"), {"/dev/zero", "a device"}));
}

TEST_F(MappedFileTest, RefusesAFileThatMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  test::write_file(folder / "a", "secret");
  chmod((folder / "a").c_str(), 0);
  EXPECT_THROW(MappedFile(folder / "a"), InputError);
}

}  // namespace mapped_file_test
}  // namespace lipscope
