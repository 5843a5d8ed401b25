#include "lipscope/io/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor open_file(const std::filesystem::path& path, int flags) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_open_error(path, errno);
  return FileDescriptor(fd);
}

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  // without O_NONBLOCK, opening a pipe would wait for somebody to write to it
  FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_open_error(path, errno);
  if (!S_ISREG(status.st_mode))
    throw InputError(fmt::format(
        "{}: is {}, expected a file", path.string(),
        S_ISDIR(status.st_mode) ? "a folder" : "a device, a pipe or a socket"));
  return file;
}

void throw_open_error(const std::filesystem::path& path, int error) {
  const std::string message =
      fmt::format("{}: cannot be opened: {}", path.string(),
                  std::generic_category().message(error));
  switch (error) {
    case EDQUOT:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      throw RunError(message);
    default:
      throw InputError(message);
  }
}

int write_all(const FileDescriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  const FileDescriptor opened(::open(folder.empty() ? "." : folder.c_str(),
                                     O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0) ::fsync(opened.get());
}

}  // namespace lipscope
