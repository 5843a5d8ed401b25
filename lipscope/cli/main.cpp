// lipscope: the Lipschitz constant of self-attention, with evidence.
//
// Exit codes: 0 done; 1 the run failed; 2 wrong command line or bad input;
// 3 not converged and --strict; 4 a number from below exceeds one from above.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/output.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"

namespace {

int fail(int code, const char* message) {
  fmt::print(stderr, "lipscope: {}\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lipscope::cli;

  // a reader that went away and a file-size limit are errors of a write, which
  // are reported, not reasons to die without a word
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  CLI::App app(
      "Measure how strongly self-attention can amplify a change of its input: "
      "its\nLipschitz constant, with evidence. 'lipscope COMMAND --help' "
      "teaches each command.");
  app.set_version_flag("--version", lipscope::version());
  app.require_subcommand(1);

  struct Command {
    CLI::App* app;
    Run run;
  };
  std::vector<Command> commands;
  const auto add = [&](const char* name, const char* summary, auto declare) {
    CLI::App* sub = app.add_subcommand(name, summary);
    Run run = declare(*sub);
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
  add("train", "a language model of characters learns a text", train_command);
  add("eval", "how well a trained model predicts a text", eval_command);
  add("sample", "what a trained model writes", sample_command);
  add("report", "a page that shows records, offline, in any browser",
      report_command);
  add("compare", "two files of records side by side on one page",
      compare_command);
  add("doctor", "this machine, its libraries and speed, and a self-test",
      doctor_command);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }

  try {
    for (const Command& command : commands)
      if (command.app->parsed()) return command.run();
    return 2;
  } catch (const Violation& e) {
    return fail(4, e.what());
  } catch (const lipscope::InputError& e) {
    return fail(2, e.what());
  } catch (const std::invalid_argument& e) {
    return fail(2, e.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory");
  } catch (const std::exception& e) {
    return fail(1, e.what());
  }
}
