#include "lipscope/io/sha256.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace sha256_test {

TEST(Sha256, OfTheExamplesOfFips180IsTheirs) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "abc", "abc");
  test::write_file(folder / "empty", "");
  test::write_file(folder / "million", std::string(1'000'000, 'a'));
  EXPECT_EQ(sha256_file(folder / "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_file(folder / "empty"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_file(folder / "million"),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfATextIsThatOfAFileWithIt) {
  const test::TemporaryFolder folder;
  const std::string text("a\0b\n", 4);
  test::write_file(folder / "text", text);
  EXPECT_EQ(sha256_text(text), sha256_file(folder / "text"));
  EXPECT_NE(sha256_text(text), sha256_text("a"));
}

TEST(Sha256, TellsHowMuchOfALargeFileItHasRead) {
  const test::TemporaryFolder folder;
  const std::string text(10'000'000, 'b');
  test::write_file(folder / "text", text);
  std::uint64_t read = 0;
  int times = 0;
  EXPECT_EQ(sha256_file(folder / "text",
                        [&](std::uint64_t more) {
                          read += more;
                          ++times;
                        }),
            sha256_text(text));
  EXPECT_EQ(read, text.size());
  EXPECT_GT(times, 1);
}

TEST(Sha256, RefusesWhatIsNotAFile) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(sha256_file(folder / "absent"), InputError);
  EXPECT_THROW(sha256_file(folder.path()), InputError);
}

}  // namespace sha256_test
}  // namespace lipscope
