#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/record/record.h"

namespace lipscope {

/// One piece of work of an audit, before it is done: a record without its
/// numbers.
struct Question {
  /// Its place in an undisturbed run, from 0 on. A run finds its questions by
  /// this number, and by the key that they are still the same.
  Index number = 0;
  std::string key;  ///< question_key
  std::optional<Index> layer, head;
  Index n = 0, sample = 0;
  std::string line;  ///< as it stands in the file, without the newline
  Index line_number = 0;
};

/// The questions of one command, in the order in which an undisturbed run
/// answers them: what `lipscope plan` writes, workers share and `lipscope
/// merge` puts together.
///
/// As a file: a first line with `"command": "plan"`, the command it is for and
/// its arguments; a line for each question, with its number and its key; and
/// for `measure` a line for each fit of growth that follows from all answers.
class Plan {
 public:
  Plan() = default;
  /// Of this command line: `arguments` as they are typed after the command.
  Plan(std::string command, std::vector<std::string> arguments);

  /// The next question of an undisturbed run.
  void add(const Record& question);
  /// A fit that is made of the answers to questions of this plan.
  void add(const GrowthRecord& fit);

  /// The same plan with these questions of it alone and no fits: what is
  /// missing.
  Plan with(const std::vector<const Question*>& questions) const;

  const std::string& command() const { return command_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  const std::vector<Question>& questions() const { return questions_; }
  const std::vector<nlohmann::ordered_json>& fits() const { return fits_; }
  /// For messages: the file, or "the plan".
  const std::string& name() const { return name_; }

  /// The whole file.
  std::string text() const;

 private:
  friend Plan read_plan(const std::filesystem::path& path);

  std::string name_ = "the plan", command_, version_;
  std::vector<std::string> arguments_;
  std::vector<Question> questions_;
  std::vector<nlohmann::ordered_json> fits_;
};

/// InputError, with the line, for a file that is not a plan, for a line that
/// was changed (its key is not that of its fields) and for one that is cut
/// short: a plan appears whole or not at all.
Plan read_plan(const std::filesystem::path& path);

/// The first line of a plan alone: what it is for.
struct PlannedCommand {
  std::string command;
  std::vector<std::string> arguments;
};
PlannedCommand read_planned_command(const std::filesystem::path& path);

/// Whether this is the first line of a plan, and not a record.
bool begins_plan(const nlohmann::ordered_json& line);

/// Layer, head, length and sample of a question, for people.
std::string words_of(const Question& question);

}  // namespace lipscope
