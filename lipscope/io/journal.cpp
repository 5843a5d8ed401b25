#include "lipscope/io/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/text_file.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

struct stat status_of(const FileDescriptor& file,
                      const std::filesystem::path& path) {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_open_error(path, errno);
  return status;
}

void lock(const FileDescriptor& file, const std::filesystem::path& path) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    throw InputError(
        fmt::format("{}: another run is writing to it", path.string()));
  throw RunError(
      fmt::format("{}: cannot be locked: {}", path.string(), text_of(errno)));
}

// A line that is JSON, or nothing where it stops being that.
std::optional<ordered_json> parse(const std::string& place,
                                  std::string_view line) {
  try {
    return parse_ordered_json(place, line);
  } catch (const JsonSyntaxError&) {
    return std::nullopt;
  }
}

using Take = std::function<void(ordered_json)>;

// What is worth keeping of a journal.
struct Contents {
  std::size_t good_size = 0;  // bytes up to the end of the last good line
  bool newline_missing = false;
};

Contents read(std::string_view text, const std::filesystem::path& path,
              const Take& take) {
  Contents contents;
  for (std::size_t number = 1; contents.good_size < text.size(); ++number) {
    const std::size_t begin = contents.good_size;
    const std::size_t newline = text.find('\n', begin);
    const bool ended = newline != text.npos;
    const std::size_t end = ended ? newline + 1 : text.size();
    const std::string_view line =
        text.substr(begin, (ended ? newline : end) - begin);

    const std::string place = fmt::format("{}: line {}", path.string(), number);
    std::optional<ordered_json> record = parse(place, line);
    if (!record) {
      // Torn, if it is the last and begins as a record does, or as the zeros
      // that a file system leaves which loses power. What does not even begin
      // like a record was never one, and is not ours to cut.
      const bool zeros = number > 1 && line.starts_with('\0');
      if (end == text.size() && (zeros || line.starts_with('{'))) break;
    }
    if (!record || !record->is_object())
      throw InputError(fmt::format(
          "{}: expected a JSON object, one on every line; the file was left as "
          "it was",
          place));
    try {
      take(std::move(*record));
    } catch (const InputError& wrong) {
      throw InputError(fmt::format("{}: {}", place, wrong.what()));
    }
    contents.good_size = end;
    contents.newline_missing = !ended;
  }
  return contents;
}

}  // namespace

Journal::Journal(const std::filesystem::path& path, Mode mode,
                 const Check& check)
    : path_(path), file_(open_file(path, O_RDWR | O_CREAT | O_APPEND)) {
  regular_ = S_ISREG(status_of(file_, path).st_mode);
  if (!regular_) return;
  lock(file_, path);
  sync_folder_of(path);

  const std::string text = read_text_file(file_, path, largest_journal);
  const Contents contents = read(text, path, [&](ordered_json record) {
    if (mode != Mode::resume) return;
    if (check) check(record);
    records_.push_back(std::move(record));
  });
  // only now that every line has been looked at is the file touched
  if (contents.good_size < text.size() &&
      ::ftruncate(file_.get(), static_cast<off_t>(contents.good_size)) != 0)
    throw RunError(fmt::format("{}: the torn last line cannot be cut off: {}",
                               path.string(), text_of(errno)));
  if (contents.newline_missing)
    if (const int error = write_all(file_, std::as_bytes(std::span("\n", 1))))
      throw RunError(fmt::format("{}: the last line cannot be ended: {}",
                                 path.string(), text_of(error)));
}

void Journal::append(const ordered_json& record) {
  require(record.is_object(), "Journal: a record is a JSON object, not {}",
          record.type_name());
  if (torn_)
    throw RunError(fmt::format(
        "{}: ends in a torn record since an earlier failure; open it anew",
        path_.string()));

  const std::string line = json_line(record);
  const off_t before = regular_ ? status_of(file_, path_).st_size : 0;
  int error = write_all(file_, std::as_bytes(std::span(line)));
  if (error == 0 && regular_ && ::fsync(file_.get()) != 0) error = errno;
  if (error == 0) return;

  if (regular_) torn_ = ::ftruncate(file_.get(), before) != 0;
  throw RunError(fmt::format("{}: a record of {} bytes cannot be written: {}",
                             path_.string(), line.size(), text_of(error)));
}

JournalEnd read_journal(const std::filesystem::path& path, const Take& take) {
  const std::string text = read_text_file(path, largest_journal);
  return read(text, path, take).good_size < text.size() ? JournalEnd::torn
                                                        : JournalEnd::whole;
}

}  // namespace lipscope
