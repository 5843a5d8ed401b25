// lipscope: the Lipschitz constant of self-attention, with evidence.
//
// Exit codes: 0 done; 1 the run failed; 2 wrong command line or bad input;
// 3 not converged and --strict; 4 a number from below exceeds one from above;
// 130 interrupted.

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lipscope/audit/text_windows.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/completion.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/help.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/planned.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/machine.h"
#include "lipscope/core/nearest_word.h"
#include "lipscope/core/version.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/record/merge.h"
#include "lipscope/record/records.h"

namespace {

int fail(int code, const char* message) {
  lipscope::cli::print_note(fmt::format("lipscope: {}", message));
  return code;
}

// the names of all options that a command has
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : lipscope::cli::names_of(*option))
      names.push_back(name);
  return names;
}

// what the parser of the command line has to say: help, or what is wrong
int say(const CLI::App& app, const CLI::ParseError& e,
        const std::vector<std::string>& words) {
  if (e.get_exit_code() == 0) {
    std::ostringstream out, err;
    app.exit(e, out, err);
    fmt::print("{}", lipscope::visible_text(out.str()));
    return 0;
  }
  const auto subs = app.get_subcommands();
  if (subs.empty())
    return fail(2, fmt::format("{}; 'lipscope --help' lists the commands",
                               words.empty() ? "no command" : e.what())
                       .c_str());
  const CLI::App* innermost = subs.front();
  std::string name = "lipscope " + innermost->get_name();
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    name += " " + innermost->get_name();
  }
  const CLI::App& command = *innermost;
  for (const std::string& word : words) {
    const std::string option = word.substr(0, word.find('='));
    if (option.rfind("--", 0) != 0 || option.size() < 3 ||
        command.get_option_no_throw(option))
      continue;
    return fail(
        2, fmt::format("{}: unknown option '{}'{}", command.get_name(), option,
                       lipscope::did_you_mean(
                           option, option_names(command),
                           fmt::format("'{} --help' lists them", name)))
               .c_str());
  }
  return fail(
      2, fmt::format("{}; '{} --help' explains the options", e.what(), name)
             .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lipscope::cli;

  // a reader that went away and a file-size limit are errors of a write, which
  // are reported, not reasons to die without a word
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  // What a product frees the next one takes again; given back to the system in
  // between, its pages would have to be made anew every time. But for buffers
  // of 8 MB and more: kept, those of long sequences would fill the memory.
  mallopt(M_MMAP_THRESHOLD, 1 << 23);
  mallopt(M_TRIM_THRESHOLD, 1 << 29);

  CLI::App app(
      "Measure how strongly self-attention can amplify a change of its input: "
      "its Lipschitz constant, with evidence. 'lipscope COMMAND --help' "
      "explains each command.\n\n"
      "  lipscope measure bert/ --text alice.txt\n"
      "  lipscope report audit.jsonl");
  app.set_version_flag(
      "--version",
      fmt::format("{} (commit {})", lipscope::version(), lipscope::commit()));
  app.require_subcommand(1);

  struct Command {
    CLI::App* app;
    Run run;
  };
  std::vector<Command> commands;
  std::map<std::string, std::string> summaries;
  const auto add = [&](const char* name, const char* summary, auto declare) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->set_help_flag("-h,--help", "show this help");
    Run run = declare(*sub);
    const auto require_values = [](CLI::App* of) {
      for (CLI::Option* option : of->get_options())
        if (option->get_items_expected_max() > 0) option->check(not_empty());
    };
    require_values(sub);
    for (CLI::App* inner : sub->get_subcommands(nullptr)) require_values(inner);
    summaries[name] = summary;
    commands.push_back({sub, std::move(run)});
  };
  add("measure", "the local constant of a layer at given tokens",
      measure_command);
  add("bound", "every bound from above, from weights, length and radius",
      bound_command);
  add("search", "the inputs at which a layer reacts most, over a region",
      search_command);
  add("meanfield", "tokens with masses: constants in the Wasserstein distance",
      meanfield_command);
  add("invert", "the input of residual attention from its output",
      invert_command);
  add("train", "a language model of characters learns a text", train_command);
  add("eval", "how well a trained model predicts a text", eval_command);
  add("sample", "what a trained model writes", sample_command);
  add("certify", "how far a trained model's predictions hold", certify_command);
  add("plan", "the questions of an audit, for many workers", plan_command);
  add("merge", "journals of many workers as one file of records",
      merge_command);
  add("report", "a page that shows records, offline, in any browser",
      report_command);
  add("compare", "two files of records side by side on one page",
      compare_command);
  add("reproduce", "a figure or table of the papers, made again",
      reproduce_command);
  add("doctor", "this machine, its libraries and speed, and a self-test",
      doctor_command);

  const auto help = std::make_shared<Help>(summaries);
  app.formatter(help);
  for (const Command& command : commands) {
    command.app->formatter(help);
    for (CLI::App* inner : command.app->get_subcommands(nullptr))
      inner->formatter(help);
  }

  std::vector<std::string> words(argv + 1, argv + argc);
  std::vector<std::string> names;
  for (const Command& command : commands)
    names.push_back(command.app->get_name());
  if (!words.empty() && words[0] == "completion") {
    try {
      print_out(
          completion_script(app, words.size() > 1 ? words[1] : "", summaries));
      return 0;
    } catch (const lipscope::InputError& e) {
      return fail(2, e.what());
    }
  }
  if (!words.empty() && words[0].rfind("-", 0) != 0 &&
      std::find(names.begin(), names.end(), words[0]) == names.end())
    return fail(2, fmt::format("unknown command '{}'{}", words[0],
                               lipscope::did_you_mean(
                                   words[0], names,
                                   "'lipscope --help' lists the commands"))
                       .c_str());

  try {
    words = with_planned_arguments(words);
    app.name(argv[0]);
    // CLI11 takes the words from the last to the first
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    return say(app, e, words);
  } catch (const lipscope::InputError& e) {
    return fail(2, e.what());
  }

  try {
    for (const Command& command : commands)
      if (command.app->parsed()) return command.run();
    return 2;
  } catch (const Interrupted& e) {
    return fail(130, fmt::format("{}; {}", e.what(),
                                 what_is_kept(*app.get_subcommands().front()))
                         .c_str());
  } catch (const lipscope::Violation& e) {
    return fail(4, e.what());
  } catch (const lipscope::MergeConflict& e) {
    return fail(1, e.what());
  } catch (const lipscope::audit::TextTooShort& e) {
    // a command that works in place of the one that was given
    const std::string instead =
        lipscope::command_without({"--length", "--lengths", "--samples"}) +
        " " + lipscope::as_options(e.windows);
    return fail(
        2,
        fmt::format("{}. This works:\n  {}", e.short_message, instead).c_str());
  } catch (const lipscope::InputError& e) {
    return fail(2, e.what());
  } catch (const std::invalid_argument& e) {
    return fail(2, e.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory");
  } catch (const std::filesystem::filesystem_error& e) {
    return fail(2, (e.path1().string() + ": " + e.code().message()).c_str());
  } catch (const nlohmann::json::exception&) {
    // every reader checks what it takes, and says file and field
    return fail(2, "a file holds JSON of another form than was expected");
  } catch (const std::exception& e) {
    return fail(1, e.what());
  }
}
