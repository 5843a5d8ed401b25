#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lipscope/cli/record.h"
#include "lipscope/cli/view.h"
#include "lipscope/io/journal.h"

namespace lipscope::cli {

struct OutputOptions {
  bool json = false;
  bool quiet = false;
  std::string out;  ///< FILE.jsonl
  bool resume = false;
  bool force = false;
  ViewOptions view;
};

/// --json, --out, --resume, --quiet, --force, --csv and --wide; with `rows`
/// also
/// --sort and --top.
void declare_output(CLI::App& app, OutputOptions& options, bool rows = true);

/// --force: of every command that writes files.
void declare_force(CLI::App& app, bool& force);

/// Where records go: the journal as each is made, and standard output as JSON
/// lines or, at the end, as the tables of the command.
class Records {
 public:
  explicit Records(const OutputOptions& options);

  /// The answer to this record's question that --resume found, or nothing.
  /// Throws Violation if its numbers contradict each other.
  const nlohmann::ordered_json* find(const Record& question) const;

  /// If the answer is known, it takes its place among the rows of this run,
  /// under the names of this question. Whether it is.
  bool keep(const Record& question);

  /// Writes the record down; where its question was answered before, that
  /// answer is kept instead. Throws Violation if its numbers contradict each
  /// other, after they are written: they are the evidence.
  void add(const Record& record);

  /// The same for a growth fit; one that is in the journal already is not
  /// written again.
  void add(const GrowthRecord& record);

  /// Under --resume, says on standard error how many answers are there.
  void announce(Index found, Index to_do) const;
  bool resumes() const { return options_.resume; }

  /// The rows of this run, found or new, in the order of an undisturbed run,
  /// and the fits; for a table at the end.
  const std::vector<nlohmann::ordered_json>& shown() const { return shown_; }
  const std::vector<nlohmann::ordered_json>& fits() const { return fits_; }
  bool all_converged() const;  ///< of the rows
  const OutputOptions& options() const { return options_; }

 private:
  OutputOptions options_;
  std::unique_ptr<Journal> journal_;

  // SHA-256 of the key, and of key and place
  static std::string key_hash(const nlohmann::ordered_json& record);
  static std::string line_hash(const nlohmann::ordered_json& record);
  /// To the journal, unless this line is there.
  void write(const nlohmann::ordered_json& record);
  void show(const nlohmann::ordered_json& record);

  std::map<std::string, nlohmann::ordered_json> answered_;  // by key_hash
  std::set<std::string> written_;                           // by line_hash
  std::vector<nlohmann::ordered_json> shown_, fits_;
};

/// A number from below came out above one from above. Exit code 4.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Violation, with what the record says, if it is not consistent.
void check_sides(const nlohmann::ordered_json& record);

/// A record as it goes into a file: with the command line and the machine that
/// it is from.
nlohmann::ordered_json with_provenance(nlohmann::ordered_json record);

/// To standard output, now. RunError if it cannot be written.
void print_out(const std::string& text);

/// Text for people, to standard output, now. What a terminal would obey is
/// written out (visible_text): names and texts come from outside.
void print_text(const std::string& text);

}  // namespace lipscope::cli
