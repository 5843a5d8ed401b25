#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lipscope/audit/progress.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/record/plan.h"

/// Commands whose questions can be written as a plan and answered in parts.
namespace lipscope::cli {

/// What `plan` needs of such a command, once its options are parsed.
struct PlannedQuestions {
  std::function<Plan(const std::vector<std::string>& arguments,
                     const audit::Watch& watch)>
      plan;
  std::function<OutputFiles()> files;  ///< that the command reads
  std::function<const OutputOptions&()> output;
};

/// Of a command whose arguments have `request` and `output`: the plan that is
/// made of the request, and the files that it reads.
template <class Arguments, class PlanOf, class FilesOf>
PlannedQuestions questions_of(const std::shared_ptr<Arguments>& arguments,
                              const PlanOf& plan, const FilesOf& files) {
  return {
      .plan =
          [=](const std::vector<std::string>& words,
              const audit::Watch& watch) {
            return plan(arguments->request, words, watch);
          },
      .files = [=] { return files(arguments->request); },
      .output = [=]() -> const OutputOptions& { return arguments->output; }};
}

/// Each declares the options of its command on `app`.
PlannedQuestions measure_questions(CLI::App& app);
PlannedQuestions bound_questions(CLI::App& app);
PlannedQuestions search_questions(CLI::App& app);
PlannedQuestions certify_questions(CLI::App& app);

/// --plan and --shard, of a command that can be planned.
void declare_share(CLI::App& app, OutputOptions& options);

/// The command line with the arguments that its plan has for it: `measure
/// --plan P …` becomes `measure MODEL_DIR --text FILE … --plan P …`. InputError
/// where the plan is for another command.
std::vector<std::string> with_planned_arguments(std::vector<std::string> words);

/// The words of this command line after this one.
std::vector<std::string> words_after(const std::string& word);

}  // namespace lipscope::cli
