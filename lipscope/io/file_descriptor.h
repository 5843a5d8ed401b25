#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace lipscope {

/// An open file, closed when its owner goes. Move-only.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// open(2) with these flags, closed on exec. A new file gets what the umask
/// leaves of rw-rw-rw-. Failures go through throw_open_error.
FileDescriptor open_file(const std::filesystem::path& path, int flags);

/// A file to be read from its beginning. InputError for a folder, a device, a
/// pipe or a socket: a device may never end, and a pipe may never begin.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// For an open that failed with this errno: RunError where the machine is at
/// fault (full disk, input/output error, out of memory or descriptors),
/// InputError where the path is.
[[noreturn]] void throw_open_error(const std::filesystem::path& path,
                                   int error);

/// Writes all the bytes, however many calls of write(2) that takes. Returns 0,
/// or the errno that stopped it: what was written before stays written, and the
/// caller knows how to take it back.
int write_all(const FileDescriptor& file, std::span<const std::byte> bytes);

/// Makes what the folder lists last through a power cut. Does its best: a
/// folder that may be written but not read cannot be synchronised.
void sync_folder_of(const std::filesystem::path& path);

}  // namespace lipscope
