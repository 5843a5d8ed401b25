#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lipscope/record/plan.h"

namespace lipscope {

struct MergeOptions {
  /// By how much, relative to the larger, two builds or kinds of CPU may differ
  /// in a number; nothing: by the tolerance that the record was measured with,
  /// or 1e-6 where it has none.
  std::optional<double> tolerance = {};
};

/// Journals of several workers put together as one file, in the order of their
/// plan.
///
/// Every record is known by its key. Two answers to one question that are equal
/// count once. If they are not equal and come from one build and one kind of
/// CPU, one of them is wrong, and `add` throws. From different ones the first
/// is kept, in the order of the plan and then of the files; the difference is
/// noted, and `add` throws only if it is beyond the tolerance or if the
/// enclosures contradict each other.
class Merge {
 public:
  /// Borrows the plan, which must outlive this.
  explicit Merge(const Plan& plan, MergeOptions options = {});

  /// Whether it answers a question of the plan, or fits such answers.
  bool asks(const nlohmann::ordered_json& record) const;

  /// One record of a journal; `place` is its file and line. Whether it was
  /// news. InputError, beginning with the place, for a record that is not
  /// sound, was changed or is not of this plan; MergeConflict, with both, for
  /// answers that cannot both be right. Records that a budget cut are no
  /// answers and fits are made anew: both are left out.
  bool add(const nlohmann::ordered_json& record, const std::string& place);

  /// Questions without an answer, in the order of the plan.
  std::vector<const Question*> missing() const;

  /// All records, in the order of an undisturbed run, and the fits of growth
  /// whose points are all there.
  void write(
      const std::function<void(const nlohmann::ordered_json&)>& row,
      const std::function<void(const nlohmann::ordered_json&)>& fit) const;

  Index records() const { return records_; }        ///< kept
  Index duplicates() const { return duplicates_; }  ///< equal, left out
  Index cut() const { return cut_; }                ///< by a budget
  /// What was kept and what not where two builds or kinds of CPU differ, in
  /// words.
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  // one answer; kept as text, which is a tenth of it in memory
  struct Kept {
    std::string line;
    std::string place;
    std::size_t at = 0;  // place in the plan under which it was asked
  };
  // what a question was answered, by the key of the record
  struct Answer {
    std::vector<std::string> keys;  // in the order in which they came
    std::map<std::string, Kept> records;
  };

  std::size_t place_in_plan(const std::vector<std::size_t>& asked,
                            const nlohmann::ordered_json& record) const;
  void compare(const nlohmann::ordered_json& kept, const std::string& kept_at,
               const nlohmann::ordered_json& other,
               const std::string& other_at);
  bool complete(const Answer& answer) const;
  std::vector<nlohmann::ordered_json> rows_of(const Answer& answer) const;
  std::optional<nlohmann::ordered_json> fit_of(
      nlohmann::ordered_json fit) const;
  const Answer* answer_to(const Question& question) const;

  const Plan& plan_;
  MergeOptions options_;
  // places in the plan, by key: the same window may be asked for twice
  std::unordered_map<std::string, std::vector<std::size_t>> asked_;
  std::unordered_map<std::string, Answer> answers_;  // by key of the question
  Index records_ = 0, duplicates_ = 0, cut_ = 0;
  std::vector<std::string> differences_;
};

/// Two answers to one question that cannot both be right.
class MergeConflict : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lipscope
