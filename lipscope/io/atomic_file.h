#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "lipscope/io/file_descriptor.h"

namespace lipscope {

/// A file that appears whole or not at all: it is written under another name in
/// the same folder, and takes its own on commit. Whoever opens the path, at any
/// moment and after any crash, finds the old content or the new.
///
/// A path that is a device or a pipe cannot be replaced and is written
/// directly; a symbolic link stays, and the file it points at is replaced.
class AtomicFile {
 public:
  /// InputError if no file can be made there.
  explicit AtomicFile(const std::filesystem::path& path);
  /// Without a commit, takes away what was written.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// RunError if the disk is full, or failed.
  void write(std::span<const std::byte> bytes);

  /// Puts the file in its place once its bytes are safely on the disk.
  /// RunError if they could not be put there; the path is then as it was.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty: written directly, or committed
  FileDescriptor file_;
};

}  // namespace lipscope
