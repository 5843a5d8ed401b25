#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/io/journal.h"
#include "lipscope/record/merge.h"
#include "lipscope/record/plan.h"

namespace lipscope::python {

/// The answers to a plan as they come in from workers, in any order: each goes
/// into a journal at once, and at the end the file is put into the order of the
/// plan. What the file had of other audits stays ahead of it.
class Collection {
 public:
  /// Opens the journal, or makes an empty one; without a file, answers are in
  /// memory alone. With `resume` the answers that it has are used. InputError
  /// for a file that is not one of records, or that another run has open.
  Collection(Plan plan, std::filesystem::path file, bool resume);

  const Plan& plan() const { return plan_; }

  /// Questions without an answer.
  std::vector<const Question*> missing() const { return merge_.missing(); }

  /// One record that a worker made, as a line of JSON. See Merge::add for what
  /// is thrown.
  void take(const std::string& line, const std::string& worker);

  /// Puts the file into the order of the plan, with the fits of growth that
  /// follow from the answers, as an undisturbed run writes it. After a crash
  /// the file is as it was before or as it is after.
  void finish();

  /// Lets go of the file, for others to write to.
  void close() { journal_.reset(); }

  /// Of the answers, in the order of the plan.
  std::vector<nlohmann::ordered_json> rows() const;
  std::vector<nlohmann::ordered_json> fits() const;

 private:
  Plan plan_;
  std::filesystem::path file_;
  Merge merge_;
  std::unique_ptr<Journal> journal_;
  std::string ahead_;  // lines of the file that are not of this plan
};

}  // namespace lipscope::python
