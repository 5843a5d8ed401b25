#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace lipscope {

/// The bytes of a file, mapped into memory for reading. Move-only.
///
/// A file that is replaced by renaming another over it stays as it was mapped;
/// one that is shortened in place while mapped ends the program with SIGBUS.
class MappedFile {
 public:
  /// InputError if there is no such file, or if it is a folder, a device, a
  /// pipe, or not readable.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  /// Readable as long as this lives.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Lets go of the memory that reading these bytes of a mapped file took. They
/// stay readable, and are then read from the file again; so what is read once
/// takes memory only while it is read.
void release_pages(std::span<const std::byte> bytes);

}  // namespace lipscope
