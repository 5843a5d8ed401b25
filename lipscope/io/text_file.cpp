#include "lipscope/io/text_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

[[noreturn]] void refuse_size(const std::filesystem::path& path,
                              std::uint64_t size, std::uint64_t most) {
  throw InputError(fmt::format("{}: {} bytes or more; at most {} are read",
                               path.string(), size, most));
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path,
                           std::uint64_t most) {
  return read_text_file(open_regular_file(path), path, most);
}

std::string read_text_file(const FileDescriptor& file,
                           const std::filesystem::path& path,
                           std::uint64_t most) {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_open_error(path, errno);
  const auto said = static_cast<std::uint64_t>(status.st_size);
  if (said > most) refuse_size(path, said, most);

  // up to the end and not up to the size: a file may grow while it is read, and
  // those of /proc say that they are empty
  std::string text(said, '\0');
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(size + 65536);
    const ssize_t got = ::pread(file.get(), text.data() + size,
                                text.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw InputError(fmt::format("{}: cannot be read: {}", path.string(),
                                   std::generic_category().message(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most) refuse_size(path, size, most);
  }
  text.resize(size);
  return text;
}

}  // namespace lipscope
