#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

namespace lipscope {

/// Which records a page shows where they are too many to be opened: a browser
/// needs seconds for a hundred thousand.
///
/// Records that differ in the window of the text alone (one file, map, layer,
/// head, length, …) are one group. Of each group some are kept, which stand for
/// all: the smallest and the largest `lower`, and those at equal ranks between
/// them, so that the median and the spread over the windows stay what they are.
/// Records whose sides contradict each other are always kept.
class Representatives {
 public:
  explicit Representatives(std::size_t most = 20'000) : most_(most) {}

  /// Every record once, in order; `file` is the number of its file.
  void note(const nlohmann::ordered_json& record, std::size_t file);

  /// Whether record number i, in the same order, is shown. After the last note.
  bool keeps(std::size_t i);

  /// Of how many; and of each so many at most, or 0 where all are kept.
  std::size_t total() const { return groups_.size(); }
  std::size_t of_each();

 private:
  void choose();

  std::size_t most_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of groups
  std::vector<std::uint32_t> groups_;                       // of each record
  std::vector<float> values_;
  std::vector<bool> always_;
  std::vector<bool> kept_;  // once chosen
  std::size_t of_each_ = 0;
};

}  // namespace lipscope
