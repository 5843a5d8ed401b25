#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/io/safetensors.h"

namespace lipscope {

/// The safetensors files of a Hugging Face folder, mapped from disk: the first
/// of
///
///   model.safetensors
///   model.safetensors.index.json, which says which shard holds which tensor
///   the only *.safetensors
///
/// InputError where there is none, or more than one to choose from, and for an
/// index that names files outside the folder or tensors that are not where it
/// says.
class WeightFiles {
 public:
  explicit WeightFiles(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  bool contains(std::string_view name) const { return of_.contains(name); }

  /// The file that holds a tensor, which must be there; it lives as long as
  /// this.
  const SafetensorsFile& file_of(std::string_view name) const;

  /// The SHA-256 of the file. For shards, of the lines that sha256sum would
  /// print of them, in order of their names. Reads everything: not for free.
  /// `read` is told now and then how many bytes are read, of how many in all.
  using BytesRead = std::function<void(std::uint64_t read, std::uint64_t all)>;
  std::string sha256(const BytesRead& read = {}) const;

 private:
  void open_shards(const std::filesystem::path& index);

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t, std::less<>> of_;  // tensor → file
};

}  // namespace lipscope
