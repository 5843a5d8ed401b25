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

}  // namespace lipscope
