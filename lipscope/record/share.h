#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lipscope/record/plan.h"

namespace lipscope {

/// Part `number` of `count`, counted from 1 on: "3/8".
struct Shard {
  Index number = 1, count = 1;
};

/// InputError for anything but NUMBER/COUNT with 1 <= NUMBER <= COUNT.
Shard parse_shard(const std::string& text);

/// A plan cut into so many parts of about the same work, by the places of the
/// questions in the plan. Every question is in one part; parts are empty where
/// there are fewer questions.
///
/// A window of tokens has to go through the model before anything can be
/// measured at it. So `measure` is cut by windows, neighbours together, a piece
/// of every length for each part: a part answers all that is asked of its
/// windows, and a model that is too large for the memory is read one layer at a
/// time, which serves all of them. Where there are fewer windows than parts,
/// and for other commands, the list of questions is cut, layer after layer.
std::vector<std::vector<std::size_t>> parts_of(
    const std::vector<const Question*>& questions, std::size_t count,
    const std::string& command);

/// The questions that a run is to answer, of all that its command line asks.
class Share {
 public:
  /// Shard i/k of a plan.
  Share(const Plan& plan, const Shard& shard);
  /// Questions by number; of what they ask nothing is known here.
  explicit Share(const std::vector<Index>& numbers);

  bool has(Index number) const { return lines_.contains(number); }
  Index size() const { return static_cast<Index>(lines_.size()); }

  /// InputError, with the line of the plan, if this is not the question that
  /// the plan has under the number: the model, the text or the version changed.
  void check(Index number, const nlohmann::ordered_json& question) const;

  /// InputError if the plan has questions beyond the `total` that the command
  /// line asks.
  void check_total(Index total) const;

 private:
  struct Line {
    std::string key;  // empty: not known
    Index line_number = 0;
  };
  std::string plan_;  // its name
  std::unordered_map<Index, Line> lines_;
};

}  // namespace lipscope
