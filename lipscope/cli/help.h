#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace lipscope::cli {

/// What --help prints: how the command is called, examples, what it does, its
/// options by group with what they take and what they are if not given; no line
/// wider than the terminal. Of the program itself: its commands, one line each.
class Help final : public CLI::FormatterBase {
 public:
  /// With the sentence of each command.
  explicit Help(std::map<std::string, std::string> summaries)
      : summaries_(std::move(summaries)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  std::map<std::string, std::string> summaries_;
};

/// The names of an option as they are typed: "--length, --lengths".
std::vector<std::string> names_of(const CLI::Option& option);

/// What stands for its value in help: FILE, N, X, ...; nothing for a flag.
std::string value_name(const CLI::Option& option);

}  // namespace lipscope::cli
