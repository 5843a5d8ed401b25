#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lipscope::test {

/// A folder of its own for one test, gone with everything in it afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "/lipscope-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

  /// How many entries it has: a temporary file left behind would count.
  std::ptrdiff_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path,
                       std::string_view content) {
  // ext4 flushes a file that is emptied and written again to the disk at once,
  // which takes a test with thousands of them seconds; not so a new file
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The bytes of a number, as a little-endian machine stores them.
template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// For as long as it lives, files end at `bytes` as they would on a full disk:
/// the write that reaches the limit is partial, the next one fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_;
  void (*handler_)(int);
};

/// What an Error thrown by the call says; fails if none is thrown.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected kind was thrown";
  return "";
}

/// Whether the message holds each of the words, and nothing but ASCII.
inline testing::AssertionResult says(const std::string& message,
                                     std::initializer_list<std::string> words) {
  for (const std::string& word : words)
    if (message.find(word) == message.npos)
      return testing::AssertionFailure()
             << "no \"" << word << "\" in: " << message;
  for (const char c : message)
    if (c < ' ' || c > '~')
      return testing::AssertionFailure() << "not ASCII: " << message;
  return testing::AssertionSuccess() << message;
}

}  // namespace lipscope::test
