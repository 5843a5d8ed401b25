#include "lipscope/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/file_descriptor.h"

namespace lipscope {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // without O_NONBLOCK, opening a pipe would wait for somebody to write to it
  const FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_open_error(path, errno);
  if (!S_ISREG(status.st_mode))
    throw InputError(fmt::format(
        "{}: is {}, expected a file", path.string(),
        S_ISDIR(status.st_mode) ? "a folder" : "a device, a pipe or a socket"));

  // mmap refuses to map nothing
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  const void* start =
      ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) throw_open_error(path, errno);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty())
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace lipscope
