#include "lipscope/model/weight_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"

namespace lipscope {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path, unreadable);
}

// the only *.safetensors of a folder
fs::path only_file(const fs::path& folder) {
  std::vector<fs::path> found;
  bool pickles = false;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().extension() == ".safetensors" && is_file(entry.path()))
      found.push_back(entry.path());
    pickles = pickles || entry.path().extension() == ".bin" ||
              entry.path().extension() == ".pt";
  }
  if (unreadable)
    throw InputError(fmt::format("{}: cannot be read as a folder: {}",
                                 folder.string(), unreadable.message()));
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw InputError(fmt::format(
        "{}: no *.safetensors{}", folder.string(),
        pickles ? "; PyTorch's pickled weights are programs and are not read"
                : ""));
  std::sort(found.begin(), found.end());
  throw InputError(fmt::format(
      "{}: {} *.safetensors, {} and {} among them, and neither "
      "model.safetensors nor model.safetensors.index.json",
      folder.string(), found.size(), printable(found[0].filename().string()),
      printable(found[1].filename().string())));
}

// {"weight_map": {tensor: file}}, files grouped by name
using Shards = std::map<std::string, std::vector<std::string>>;

Shards read_index(const fs::path& path) {
  using nlohmann::json;
  const json index =
      parse_json(path.string(), read_text_file(path, largest_config));
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    throw InputError(fmt::format(
        "{}: expected JSON {{\"weight_map\": {{tensor: file, ...}}}}",
        path.string()));

  Shards shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      throw InputError(fmt::format("{}: the file of tensor {} is not a string",
                                   path.string(), printable(tensor)));
    const std::string name = shard.get<std::string>();
    // a plain name in this folder, and nothing that leads out of it
    if (name.find_first_of(std::string_view("/\\\0", 3)) != name.npos ||
        fs::path(name).extension() != ".safetensors")
      throw InputError(fmt::format(
          "{}: tensor {} is said to be in {}, expected the name of a "
          ".safetensors file in the same folder",
          path.string(), printable(tensor), printable(name)));
    shards[name].push_back(tensor);
  }
  return shards;
}

}  // namespace

WeightFiles::WeightFiles(const fs::path& folder) : folder_(folder) {
  const fs::path whole = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (!is_file(whole) && is_file(index)) {
    open_shards(index);
    return;
  }
  files_.emplace_back(is_file(whole) ? whole : only_file(folder));
  for (const std::string& name : files_.front().names()) of_[name] = 0;
}

void WeightFiles::open_shards(const fs::path& index) {
  for (const auto& [name, tensors] : read_index(index)) {
    if (!is_file(folder_ / name))
      throw InputError(fmt::format("{}: shard {} is not there", index.string(),
                                   printable(name)));
    files_.emplace_back(folder_ / name);
    for (const std::string& tensor : tensors) {
      if (!files_.back().contains(tensor))
        throw InputError(fmt::format(
            "{}: says that tensor {} is in {}, which has no such tensor",
            index.string(), printable(tensor), printable(name)));
      of_[tensor] = files_.size() - 1;
    }
  }
}

const SafetensorsFile& WeightFiles::file_of(std::string_view name) const {
  const auto found = of_.find(name);
  if (found == of_.end())
    throw InputError(fmt::format("{}: no tensor is called {}", folder_.string(),
                                 printable(name)));
  return files_[found->second];
}

std::string WeightFiles::sha256(const BytesRead& read) const {
  std::uint64_t done = 0, all = 0;
  for (const SafetensorsFile& file : files_) all += file.size();
  const auto hash_of = [&](const SafetensorsFile& file) {
    return sha256_file(file.path(), [&](std::uint64_t more) {
      done += more;
      if (read) read(done, all);
    });
  };
  if (files_.size() == 1) return hash_of(files_.front());
  std::string lines;  // files_ is in order of names
  for (const SafetensorsFile& file : files_)
    lines +=
        fmt::format("{}  {}\n", hash_of(file), file.path().filename().string());
  return sha256_text(lines);
}

}  // namespace lipscope
