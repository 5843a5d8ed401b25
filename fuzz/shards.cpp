// Opens a folder whose weights lie in shards: the index and one of its two
// shards, here one behind the other with a zero byte between.

#include <algorithm>
#include <fstream>

#include "fuzz/fuzzing.h"
#include "lipscope/model/weight_files.h"

using namespace lipscope;

namespace {

void write(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A folder in memory of this process, gone with it.
struct Folder {
  Folder() : path("/dev/shm/lipscope-fuzz-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path);
    const std::string header =
        R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    const std::uint64_t length = header.size();
    write(path / "b.safetensors",
          std::string(reinterpret_cast<const char*>(&length), sizeof length) +
              header + std::string("\0\0\x80\x3f", 4));
  }
  ~Folder() { std::filesystem::remove_all(path); }

  std::filesystem::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const Folder folder;
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t cut = std::min(text.find('\0'), text.size());
  write(folder.path / "model.safetensors.index.json", text.substr(0, cut));
  write(folder.path / "a.safetensors",
        text.substr(std::min(cut + 1, text.size())));
  fuzz::may_refuse([&] {
    const WeightFiles files(folder.path);
    for (const char* name : {"a", "b"}) {
      if (!files.contains(name)) continue;
      const SafetensorsFile& file = files.file_of(name);
      fuzz::hold(file.contains(name), "a tensor is where the index says");
      fuzz::hold(file.path().parent_path() == folder.path,
                 "no file is outside the folder");
    }
    fuzz::hold(!files.sha256().empty(), "files have a fingerprint");
  });
  return 0;
}
