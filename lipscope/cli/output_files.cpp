#include "lipscope/cli/output_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "lipscope/core/errors.h"
#include "lipscope/io/file_descriptor.h"
#include "lipscope/io/json_text.h"
#include "lipscope/report/page.h"
#include "lipscope/train/model_folder.h"

namespace lipscope::cli {
namespace {

namespace fs = std::filesystem;

std::optional<struct stat> status_of(const fs::path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

bool is_regular(const fs::path& path) {
  const auto status = status_of(path);
  return status && S_ISREG(status->st_mode);
}

// Where a file will be that is not there yet: symbolic links are followed even
// if they lead nowhere, and the folder is put in its one true form.
fs::path place_of(fs::path path) {
  std::error_code none;
  for (int links = 0; links < 40 && fs::is_symlink(path, none); ++links) {
    const fs::path to = fs::read_symlink(path, none);
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const fs::path known = fs::weakly_canonical(folder, none);
  return (none ? fs::absolute(folder, none) : known) / path.filename();
}

// a file is what its device and number say, whatever it is called
bool same_file(const fs::path& a, const fs::path& b) {
  const auto x = status_of(a), y = status_of(b);
  if (x && y) return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
  if (x || y) return false;
  return place_of(a) == place_of(b);
}

// That the file can be made or written to; what else may fail fails later.
void require_place(const fs::path& path) {
  if (::access(path.c_str(), W_OK) == 0) return;
  if (errno != ENOENT) throw_open_error(path, errno);
  const fs::path folder = place_of(path).parent_path();
  if (::access(folder.c_str(), W_OK) != 0) throw_open_error(path, errno);
}

std::string beginning_of(const fs::path& path) {
  constexpr std::size_t enough = 1 << 16;
  const FileDescriptor file = open_regular_file(path);
  std::string text(enough, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// A first line that was cut short by a crash still begins as ours do. So does
// one that is longer than what was looked at.
bool begins_as(OutputKind kind, std::string_view text) {
  constexpr std::string_view ours = "{\"schema\":";
  const std::size_t newline = text.find('\n');
  const std::string_view line = text.substr(0, newline);
  try {
    const nlohmann::json first = parse_json("", line);
    return first.is_object() && first.contains("schema") &&
           first.contains("command") &&
           (first["command"] == "plan") == (kind == OutputKind::plan);
  } catch (const JsonSyntaxError&) {
    return newline == text.npos &&
           (line.starts_with(ours) || ours.starts_with(line));
  } catch (const InputError&) {
    return false;
  }
}

bool is_our_config(const fs::path& path) {
  if (!is_regular(path)) return false;
  const std::string text = beginning_of(path);
  try {
    const nlohmann::json config = parse_json("", text);
    return config.is_object() && config.contains("model_type") &&
           config["model_type"] == "lipscope";
  } catch (const InputError&) {
    // longer than what was looked at: the type stands at the beginning
    return text.starts_with("{\n  \"model_type\": \"lipscope\"");
  }
}

bool is_ours(OutputKind kind, const fs::path& path) {
  switch (kind) {
    case OutputKind::records:
    case OutputKind::plan:
      return begins_as(kind, beginning_of(path));
    case OutputKind::matrix:
      return beginning_of(path).starts_with("\x93NUMPY");
    case OutputKind::page:
      return is_page(beginning_of(path));
    case OutputKind::trained:
      return is_our_config(path.parent_path() / "config.json");
  }
  return false;
}

std::string name_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::records:
      return "a file of records";
    case OutputKind::plan:
      return "a plan";
    case OutputKind::matrix:
      return "a NumPy file";
    case OutputKind::page:
      return "a page of lipscope";
    case OutputKind::trained:
      return "of a model that lipscope trained";
  }
  return "";
}

}  // namespace

void OutputFiles::reads(const fs::path& path, const std::string& option) {
  if (path.empty()) return;
  std::error_code none;
  if (!fs::is_directory(path, none)) {
    read_.push_back({path, option});
    return;
  }
  for (fs::directory_iterator at(path, none), end; !none && at != end;
       at.increment(none))
    if (is_regular(at->path())) read_.push_back({at->path(), option});
}

void OutputFiles::writes(const fs::path& path, const std::string& option,
                         OutputKind kind) {
  if (!path.empty()) written_.push_back({path, option, kind});
}

void OutputFiles::writes_model(const fs::path& folder,
                               const std::string& option) {
  for (const char* name : {"config.json", "model.safetensors", "state.json",
                           "metrics.jsonl", "cost.json"})
    writes(folder / name, option, OutputKind::trained);
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end;
       at.increment(none))
    if (is_checkpoint(at->path()))
      writes(at->path(), option, OutputKind::trained);
}

void OutputFiles::check(bool force) const {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const File& out = written_[i];
    const auto status = status_of(out.path);
    // training makes its folder
    if (status || errno != ENOENT || out.kind != OutputKind::trained)
      require_place(out.path);
    if (status && S_ISDIR(status->st_mode))
      throw InputError(fmt::format("{} {}: is a folder, expected a file",
                                   out.option, out.path.string()));
    if (status && !S_ISREG(status->st_mode)) continue;
    for (const File& in : read_)
      if (same_file(out.path, in.path))
        throw InputError(fmt::format(
            "{} {}: is the file that is read as {}{}; give another name",
            out.option, out.path.string(), in.option,
            in.path == out.path ? "" : ", " + in.path.string()));
    for (std::size_t j = 0; j < i; ++j)
      if (same_file(out.path, written_[j].path))
        throw InputError(
            fmt::format("{} {}: is the file that {} writes; give another name",
                        out.option, out.path.string(), written_[j].option));
    if (force || !status || status->st_size == 0) continue;
    if (!is_ours(out.kind, out.path))
      throw InputError(fmt::format(
          "{} {}: is there already and is not {}; give another name, or "
          "--force to replace it",
          out.option, out.path.string(), name_of(out.kind)));
  }
  if (!force) return;
  for (const File& out : written_)
    if (out.kind == OutputKind::records && is_regular(out.path) &&
        !is_ours(out.kind, out.path))
      fs::resize_file(out.path, 0);
}

OutputFiles files_of(const audit::SourceOptions& source,
                     const OutputOptions& output) {
  OutputFiles files;
  files.reads(source.model, "MODEL_DIR");
  files.reads(source.weights, "--weights");
  files.reads(source.input, "--input");
  files.reads(source.embedded, "--embedded");
  files.reads(source.text, "--text");
  files.reads(source.ids, "--ids");
  files.reads(output.plan, "--plan");
  files.writes(output.out, "--out", OutputKind::records);
  return files;
}

}  // namespace lipscope::cli
