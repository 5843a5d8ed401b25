#include "lipscope/io/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "lipscope/io/file_descriptor.h"

namespace lipscope {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_open_error(path, errno);

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

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = begin / page * page;
  // the pages are only read, so that nothing can be lost; if the system does
  // not take the advice, they just stay
  ::madvise(reinterpret_cast<void*>(first), begin + bytes.size() - first,
            MADV_DONTNEED);
}

}  // namespace lipscope
