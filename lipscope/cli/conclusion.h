#pragma once

#include <functional>
#include <string>

#include "lipscope/cli/output.h"
#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// What a command prints at its end.
struct Conclusion {
  /// The table of these rows, for people.
  std::function<std::string(const Rows& rows, const View& view)> table;
  /// What was found, in one line (report/findings.h); of all rows.
  std::string answer;
  /// By which field --top takes the largest.
  std::string most = "lower";
};

/// Prints it: rows as --sort and --top ask for them, as a table that fits the
/// terminal or as comma-separated values; then the answer, which stays with
/// --quiet. Nothing with --json: the records are there already.
void conclude(const OutputOptions& options, const Rows& rows,
              const Conclusion& conclusion);

/// The view that these options ask for.
View view_of(const OutputOptions& options);

/// One sentence at the end of a command, on standard output, broken between
/// words where the terminal ends.
void print_answer(const std::string& answer);

/// Lines for people on standard output, broken between words.
void print_lines(const std::string& text);

/// A line for people on standard error, broken between words.
void print_note(const std::string& note);

}  // namespace lipscope::cli
