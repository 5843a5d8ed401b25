// lipscope plan: the questions of an audit, for many workers.

#include "lipscope/record/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/planned.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"

namespace lipscope::cli {
namespace {

// The words that say what is asked: all but those that say where the plan goes.
std::vector<std::string> asking_words(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--out") {
      ++i;
      continue;
    }
    if (words[i].starts_with("--out=") || words[i] == "--quiet" ||
        words[i] == "--force")
      continue;
    kept.push_back(words[i]);
  }
  return kept;
}

void refuse_what_is_for_workers(const CLI::App& command) {
  for (const char* name :
       {"--resume", "--json", "--csv", "--sort", "--top", "--plan", "--shard",
        "--save-direction", "--save-input"}) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option && option->count() > 0)
      throw InputError(
          fmt::format("plan {}: {} is for a run that answers; a plan asks",
                      command.get_name(), name));
  }
}

}  // namespace

Run plan_command(CLI::App& app) {
  app.description(
      "Write the questions of an audit as a file, for many workers. Each "
      "worker answers a part of them\n"
      "into a journal of its own; lipscope merge makes one file of the "
      "journals, the same as a single\n"
      "run would have written.\n\n"
      "  lipscope plan measure bert/ --text alice.txt --lengths 8,32,128 "
      "--out plan.jsonl\n"
      "  lipscope measure --plan plan.jsonl --shard 1/2 --out part-1.jsonl\n"
      "  lipscope measure --plan plan.jsonl --shard 2/2 --out part-2.jsonl\n"
      "  lipscope merge --plan plan.jsonl part-1.jsonl part-2.jsonl --out "
      "audit.jsonl\n\n"
      "The plan names model and text as they are given here: workers start in "
      "the same folder, or are\n"
      "given paths from the root on. docs/cluster.md has recipes for SLURM, "
      "MPI, Dask and Ray.");
  struct Planned {
    CLI::App* app;
    PlannedQuestions questions;
  };
  const auto planned = std::make_shared<std::vector<Planned>>();
  const auto add = [&](const char* name, const char* summary, auto declare) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->set_help_flag("-h,--help", "show this help");
    planned->push_back({sub, declare(*sub)});
  };
  add("measure", "a question for each window, layer and head",
      measure_questions);
  add("bound", "a question for each length, layer and head", bound_questions);
  add("search", "a question for each length, layer and head", search_questions);
  add("certify", "a question for each position of the text", certify_questions);
  return [planned] {
    const auto of =
        std::find_if(planned->begin(), planned->end(),
                     [](const Planned& p) { return p.app->parsed(); });
    if (of == planned->end())
      throw InputError(
          "plan: of which command? Give measure, bound, search or certify, "
          "with its options");
    const OutputOptions& output = of->questions.output();
    refuse_what_is_for_workers(*of->app);
    if (output.out.empty())
      throw InputError("plan: where to? Give --out PLAN.jsonl");
    OutputFiles files = of->questions.files();
    files.writes(output.out, "--out", OutputKind::plan);
    files.check(output.force);
    ProgressBar bar(output.quiet);
    const Plan plan = of->questions.plan(
        asking_words(words_after(of->app->get_name())), bar.watch());
    bar.clear();
    AtomicFile out(output.out);
    const std::string text = plan.text();
    out.write(std::as_bytes(std::span(text)));
    out.commit();
    print_answer(fmt::format(
        "Answer: {} questions, in {}. lipscope {} --plan {} --shard I/K --out "
        "FILE.jsonl answers part I of K.",
        plan.questions().size(), output.out, plan.command(), output.out));
    return 0;
  };
}

}  // namespace lipscope::cli
