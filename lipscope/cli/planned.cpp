#include "lipscope/cli/planned.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/machine.h"

namespace lipscope::cli {

void declare_share(CLI::App& app, OutputOptions& o) {
  const char* group = "A part of the work";
  auto* plan =
      app.add_option("--plan", o.plan,
                     "answer the questions of this file, which lipscope plan "
                     "wrote, with its options: nothing else has to be said of "
                     "weights and tokens")
          ->type_name("FILE")
          ->group(group);
  app.add_option("--shard", o.shard,
                 "only part I of K, from 1/K to K/K; each with its own --out, "
                 "which lipscope merge puts together")
      ->type_name("I/K")
      ->needs(plan)
      ->group(group);
}

std::vector<std::string> with_planned_arguments(
    std::vector<std::string> words) {
  if (words.empty()) return words;
  const char* with_plan[] = {"measure", "bound", "search", "certify"};
  if (std::find(std::begin(with_plan), std::end(with_plan), words[0]) ==
      std::end(with_plan))
    return words;
  std::string file;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--plan" && i + 1 < words.size()) file = words[i + 1];
    if (words[i].starts_with("--plan=")) file = words[i].substr(7);
  }
  if (file.empty()) return words;
  const PlannedCommand planned = read_planned_command(file);
  if (planned.command != words[0])
    throw InputError(fmt::format("--plan {}: is for 'lipscope {}', not '{}'",
                                 file, planned.command, words[0]));
  words.insert(words.begin() + 1, planned.arguments.begin(),
               planned.arguments.end());
  return words;
}

std::vector<std::string> words_after(const std::string& word) {
  const std::vector<std::string> words = command_words();
  const auto at = std::find(words.begin(), words.end(), word);
  return {at == words.end() ? at : at + 1, words.end()};
}

}  // namespace lipscope::cli
