// lipscope: the Lipschitz constant of self-attention, with evidence.
//
// Exit codes: 0 done; 1 the run failed; 2 wrong command line or bad input;
// 3 not converged and --strict; 4 a number from below exceeds one from above;
// 130 interrupted.

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
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

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/output.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/core/visible_text.h"

namespace {

// One line for each command; its own --help has the rest.
class Summaries final : public CLI::Formatter {
 public:
  explicit Summaries(std::map<std::string, std::string> lines)
      : lines_(std::move(lines)) {}

  std::string make_subcommand(const CLI::App* sub) const override {
    return fmt::format("  {:<12}{}\n", sub->get_name(),
                       lines_.at(sub->get_name()));
  }

 private:
  std::map<std::string, std::string> lines_;
};

int fail(int code, const char* message) {
  lipscope::cli::print_note(fmt::format("lipscope: {}", message));
  return code;
}

// what the parser of the command line has to say: help, or what is wrong
int say(const CLI::App& app, const CLI::ParseError& e) {
  std::ostringstream out, err;
  const int code = app.exit(e, out, err);
  fmt::print("{}", lipscope::visible_text(out.str()));
  fmt::print(stderr, "{}", lipscope::visible_text(err.str()));
  return code == 0 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lipscope::cli;

  // a reader that went away and a file-size limit are errors of a write, which
  // are reported, not reasons to die without a word
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  // what a product frees the next one takes again; given back to the system in
  // between, its pages would have to be made anew every time
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  mallopt(M_TRIM_THRESHOLD, 1 << 29);

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
  std::map<std::string, std::string> summaries;
  const auto add = [&](const char* name, const char* summary, auto declare) {
    CLI::App* sub = app.add_subcommand(name, summary);
    Run run = declare(*sub);
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
  add("report", "a page that shows records, offline, in any browser",
      report_command);
  add("compare", "two files of records side by side on one page",
      compare_command);
  add("reproduce", "a figure or table of the papers, made again",
      reproduce_command);
  add("doctor", "this machine, its libraries and speed, and a self-test",
      doctor_command);

  // after the commands, which would inherit it
  app.formatter(std::make_shared<Summaries>(summaries));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return say(app, e);
  }

  try {
    for (const Command& command : commands)
      if (command.app->parsed()) return command.run();
    return 2;
  } catch (const Interrupted& e) {
    return fail(130, fmt::format("{}; {}", e.what(),
                                 what_is_kept(*app.get_subcommands().front()))
                         .c_str());
  } catch (const Violation& e) {
    return fail(4, e.what());
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
