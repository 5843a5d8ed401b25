#include "lipscope/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

[[noreturn]] void throw_run_error(const std::filesystem::path& path,
                                  std::string_view failed, int error) {
  throw RunError(fmt::format("{}: {} failed: {}", path.string(), failed,
                             std::generic_category().message(error)));
}

// Where a link leads that leads nowhere yet. One that leads in a circle has
// been refused before.
std::filesystem::path end_of_links(std::filesystem::path path) {
  std::error_code none;
  while (std::filesystem::is_symlink(path, none))
    path = path.parent_path() / std::filesystem::read_symlink(path, none);
  return path;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : target_(path), file_(-1) {
  // the temporary name would be a good one even where the path is not
  if (!path.has_filename())
    throw_open_error(path, path.empty() ? ENOENT : EISDIR);
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    // a pipe that nobody reads would be waited for without end; once it is
    // open, its reader may take what time it likes
    file_ = open_file(path, O_WRONLY | O_NONBLOCK);
    ::fcntl(file_.get(), F_SETFL, O_WRONLY);
    return;
  }
  if (!exists && errno != ENOENT) throw_open_error(path, errno);
  target_ = exists ? std::filesystem::canonical(path) : end_of_links(path);

  // O_EXCL: a name that another process, or a crashed run, has taken is left
  // alone. mkstemp would do the same but make the file private.
  for (int attempt = 0; file_.get() < 0; ++attempt) {
    temporary_ = target_;
    temporary_ += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
    file_ = FileDescriptor(::open(
        temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file_.get() < 0 && errno != EEXIST) {
      const int error = errno;
      temporary_.clear();
      throw_open_error(path, error);
    }
  }
  // who could read the old file can read the new one, and nobody else
  if (exists) ::fchmod(file_.get(), status.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const int error = write_all(file_, bytes);
  if (error != 0) throw_run_error(target_, "writing", error);
}

void AtomicFile::commit() {
  if (temporary_.empty()) return;
  // without the fsync, a power cut after the rename may leave an empty file
  if (::fsync(file_.get()) != 0) throw_run_error(target_, "fsync", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw_run_error(target_, "renaming the finished file", errno);
  temporary_.clear();
  sync_folder_of(target_);
}

}  // namespace lipscope
