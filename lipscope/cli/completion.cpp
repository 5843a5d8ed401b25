#include "lipscope/cli/completion.h"

#include <fmt/format.h>

#include <vector>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/help.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"

namespace lipscope::cli {
namespace {

bool takes_file(const CLI::Option& option) {
  return value_name(option).rfind("FILE", 0) == 0;
}

bool takes_folder(const CLI::Option& option) {
  return value_name(option) == "DIR";
}

// words without a colon: bash takes one for the end of a word
std::vector<std::string> plain_words(const CLI::Option& option) {
  std::vector<std::string> words = words_of(option);
  std::erase_if(words,
                [](const std::string& w) { return w.find(':') != w.npos; });
  return words;
}

const CLI::Option* positional(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return option;
  return nullptr;
}

std::string bash_values(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || value_name(*option).empty()) continue;
    std::string pattern;
    for (const std::string& name : names_of(*option))
      pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : "|",
                             command.get_name(), name);
    std::string reply;
    if (const auto words = plain_words(*option); !words.empty())
      reply = fmt::format("_lipscope_words \"{}\"", fmt::join(words, " "));
    else if (takes_file(*option))
      reply = "_lipscope_files";
    else if (takes_folder(*option))
      reply = "_lipscope_folders";
    text += fmt::format("    {}) {}{}return ;;\n", pattern, reply,
                        reply.empty() ? "" : "; ");
  }
  return text;
}

std::string all_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_positional())
      for (const std::string& name : names_of(*option))
        text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string bash(const CLI::App& program) {
  std::string commands, values, options, places;
  for (const CLI::App* sub : program.get_subcommands(nullptr)) {
    if (sub->get_group().empty()) continue;
    commands += sub->get_name() + " ";
    values += bash_values(*sub);
    options += fmt::format("      {}) _lipscope_words \"{}\" ;;\n",
                           sub->get_name(), all_options(*sub));
    if (const CLI::Option* place = positional(*sub))
      if (const auto words = plain_words(*place); !words.empty())
        places += fmt::format("    {}) _lipscope_words \"{}\"; return ;;\n",
                              sub->get_name(), fmt::join(words, " "));
  }
  return fmt::format(
      R"(# completion of lipscope for bash; made by `lipscope completion bash`
_lipscope_words() {{ COMPREPLY=($(compgen -W "$1" -- "$cur")); }}
_lipscope_files() {{
  compopt -o filenames 2>/dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$cur"))
}}
_lipscope_folders() {{
  compopt -o filenames 2>/dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen -d -- "$cur"))
}}
_lipscope() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _lipscope_words "{}--help --version"
    return
  fi
  case "$command $prev" in
{}  esac
  if [[ $cur == -* ]]; then
    case "$command" in
{}    esac
    return
  fi
  case "$command" in
{}    *) _lipscope_files ;;
  esac
}}
complete -F _lipscope lipscope
)",
      commands, values, options, places);
}

// what stands in a quoted specification of _arguments
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result;
}

std::string zsh_value(const CLI::Option& option) {
  const std::string name = value_name(option);
  if (name.empty()) return "";
  std::string how = " ";
  if (const auto words = plain_words(option); !words.empty())
    how = fmt::format("({})", fmt::join(words, " "));
  else if (takes_file(option) || option.get_positional())
    how = "_files";
  else if (takes_folder(option))
    how = "_files -/";
  return fmt::format(":{}:{}", escaped(name), how);
}

std::string zsh(const CLI::App& program,
                const std::map<std::string, std::string>& summaries) {
  std::string commands, cases;
  for (const CLI::App* sub : program.get_subcommands(nullptr)) {
    if (sub->get_group().empty()) continue;
    const std::string& name = sub->get_name();
    commands += fmt::format("    '{}:{}'\n", name, escaped(summaries.at(name)));
    cases += fmt::format("    {})\n      _arguments", name);
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_positional()) {
        cases += fmt::format(" \\\n        '*{}'", zsh_value(*option));
        continue;
      }
      for (const std::string& typed : names_of(*option))
        cases +=
            fmt::format(" \\\n        '{}[{}]{}'", typed,
                        escaped(option->get_description()), zsh_value(*option));
    }
    cases += " ;;\n";
  }
  return fmt::format(
      R"(#compdef lipscope
# completion of lipscope for zsh; made by `lipscope completion zsh`
_lipscope() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_lipscope "$@"
)",
      commands, cases);
}

}  // namespace

std::string completion_script(
    const CLI::App& program, const std::string& shell,
    const std::map<std::string, std::string>& summaries) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program, summaries);
  throw InputError(fmt::format("completion {}: expected bash or zsh{}", shell,
                               did_you_mean(shell, {"bash", "zsh"})));
}

}  // namespace lipscope::cli
