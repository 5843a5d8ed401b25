#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lipscope/io/journal.h"
#include "lipscope/record/record.h"
#include "lipscope/record/share.h"

namespace lipscope {

struct RecordsOptions {
  std::filesystem::path file = {};  ///< FILE.jsonl; empty: nothing is written
  bool resume = false;  ///< what the file has already is not done again
  /// Which of its questions a run answers, of a plan that several runs share.
  /// Nothing: all of them. Each record then carries the hash of its line, for
  /// who merges them.
  std::shared_ptr<const Share> share = {};
  /// Called with each row of the run, found or new, when it is known. May be
  /// empty.
  std::function<void(const nlohmann::ordered_json& row)> shown = {};
  /// Called where a run resumes, before its work begins, with how many of its
  /// answers are in the file and how many are not. May be empty.
  std::function<void(Index found, Index to_do)> counted = {};
  /// Called where a run resumes over records that another version or commit of
  /// lipscope made, with what becomes of them. May be empty.
  std::function<void(const std::string& note)> noted = {};
};

/// The records of a run: each goes into a file as soon as it is made, so that a
/// crash loses nothing that was written, and all rows of the run can be asked
/// for. A run that resumes finds there what was answered before.
class Records {
 public:
  /// The file is not touched before `open` or the first use.
  explicit Records(RecordsOptions options = {});

  /// Opens the file, or makes an empty one: a run does so when its request is
  /// understood and before its work begins. InputError for a file that is not
  /// one of records, or that another run has open. A second call does nothing.
  void open();

  /// The answer to this record's question that the file has, or nothing.
  /// Throws Violation if its numbers contradict each other. The pointer holds
  /// as long as these Records.
  const nlohmann::ordered_json* find(const Record& question);

  /// If the answer is known, it takes its place among the rows of this run,
  /// under the names of this question. Whether it is.
  bool keep(const Record& question);

  /// Writes the record down; where its question was answered before, that
  /// answer is kept instead. Throws Violation if its numbers contradict each
  /// other, after they are written: they are the evidence.
  void add(const Record& record);

  /// The same for a growth fit; one that is in the file already is not written
  /// again.
  void add(const GrowthRecord& record);

  /// Whether question `number` of those that the command line asks is this
  /// run's to answer.
  bool takes(Index number) const {
    return !options_.share || options_.share->has(number);
  }
  /// InputError if a share has another question under this number: something
  /// changed since it was planned.
  void check(Index number, const Record& question) const;
  /// Whether it answers a share of the questions only; how many, of `total`.
  bool shares() const { return options_.share != nullptr; }
  Index count_of(Index total) const;

  /// Says how many answers are there, where the run resumes.
  void count(Index found, Index to_do) const;
  bool resumes() const { return options_.resume; }

  /// The rows of this run, found or new, in the order of an undisturbed run,
  /// and the fits.
  const std::vector<nlohmann::ordered_json>& rows() const { return rows_; }
  const std::vector<nlohmann::ordered_json>& fits() const { return fits_; }
  bool all_converged() const;  ///< of the rows

 private:
  RecordsOptions options_;
  std::unique_ptr<Journal> journal_;

  // SHA-256 of the key, and of key and place
  static std::string key_hash(const nlohmann::ordered_json& record);
  static std::string line_hash(const nlohmann::ordered_json& record);
  /// To the journal, unless this line is there.
  void write(const nlohmann::ordered_json& record);
  void show(const nlohmann::ordered_json& record);

  std::map<std::string, nlohmann::ordered_json> answered_;  // by key_hash
  std::set<std::string> written_;                           // by line_hash
  std::vector<nlohmann::ordered_json> rows_, fits_;
};

/// A number from below came out above one from above.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Violation, with what the record says, if it is not consistent.
void check_sides(const nlohmann::ordered_json& record);

}  // namespace lipscope
