#include "lipscope/io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace atomic_file_test {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class AtomicFileTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "file";
};

TEST_F(AtomicFileTest, AppearsOnCommitAndNotBefore) {
  AtomicFile file(path);
  file.write(bytes("one "));
  file.write(bytes("two"));
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(test::read_file(path), "one two");
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(AtomicFileTest, LeavesTheOldFileWithoutACommit) {
  test::write_file(path, "old");
  {
    AtomicFile file(path);
    file.write(bytes("new"));
  }
  EXPECT_EQ(test::read_file(path), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(AtomicFileTest, ReplacesTheOldFileWithItsPermissions) {
  namespace fs = std::filesystem;
  test::write_file(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  AtomicFile file(path);
  file.write(bytes("new"));
  file.commit();
  EXPECT_EQ(test::read_file(path), "new");
  EXPECT_EQ(fs::status(path).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AtomicFileTest, LeavesASymbolicLinkInPlace) {
  test::write_file(path, "old");
  std::filesystem::create_symlink(path, folder / "link");
  AtomicFile file(folder / "link");
  file.write(bytes("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(test::read_file(path), "new");
}

TEST_F(AtomicFileTest, MakesTheFileThatALinkWaitsFor) {
  std::filesystem::create_symlink("file", folder / "inner");
  std::filesystem::create_symlink("inner", folder / "link");
  AtomicFile file(folder / "link");
  file.write(bytes("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "inner"));
  EXPECT_EQ(test::read_file(folder / "file"), "new");
}

TEST_F(AtomicFileTest, RefusesALinkThatLeadsInACircle) {
  std::filesystem::create_symlink("link", folder / "link");
  EXPECT_THROW(AtomicFile(folder / "link"), InputError);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST_F(AtomicFileTest, DoesNotWaitForSomebodyToReadAPipe) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(AtomicFile{path}, InputError);
}

TEST_F(AtomicFileTest, LetsTwoWriteAtOnceAndTheLastOneStand) {
  AtomicFile first(path), second(path);
  first.write(bytes("first"));
  second.write(bytes("second"));
  second.commit();
  first.commit();
  EXPECT_EQ(test::read_file(path), "first");
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(AtomicFileTest, WritesIntoAPipeAndDoesNotReplaceIt) {
  // a pipe stands for devices too: a test gone wrong must not eat /dev/null
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor reader = open_file(path, O_RDONLY | O_NONBLOCK);
  AtomicFile file(path);
  file.write(bytes("through"));
  file.commit();
  char got[8] = {};
  EXPECT_EQ(read(reader.get(), got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST_F(AtomicFileTest, ReportsAFullDisk) {
  AtomicFile file("/dev/full");
  EXPECT_TRUE(
      test::says(test::message_of<RunError>([&] { file.write(bytes("much")); }),
                 {"/dev/full", "No space left on device"}));
}

TEST_F(AtomicFileTest, RefusesAPathWhereNoFileCanBe) {
  EXPECT_THROW(AtomicFile(folder / "absent/file"), InputError);
  EXPECT_THROW(AtomicFile(folder.path()), InputError);
  EXPECT_THROW(AtomicFile(folder.path() / ""), InputError);
  EXPECT_THROW(AtomicFile(""), InputError);
}

}  // namespace atomic_file_test
}  // namespace lipscope
