// lipscope search: the inputs at which attention reacts most, over a region,
// beside what theory allows there.

#include "lipscope/audit/search.h"

#include <memory>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/searched_table.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/report/findings.h"

namespace lipscope::cli {
namespace {

struct SearchArguments {
  audit::SearchRequest request;
  OutputOptions output;
  bool strict = false;
};

void declare_search(CLI::App& app, SearchArguments& options) {
  audit::SearchRequest& o = options.request;
  app.description(
      "Search for the tokens at which attention amplifies a change most, over "
      "all sequences\n"
      "of a length whose tokens lie in a region. Print the largest constant "
      "found, with its\n"
      "tokens, and the best proved bound. The search starts from inputs that "
      "theory suggests\n"
      "and from random ones.\n\n"
      "  lipscope search gpt2/ --layers 5 --heads 3 --length 64 --radius ln\n"
      "  lipscope search --weights layer.safetensors --num-heads 1 --length 20 "
      "--radius 2 \\\n"
      "      --save-input x.npy --save-direction v.npy\n"
      "  lipscope search --random d=1,heads=1,scale=1 --kind l2 --norm inf "
      "--lengths 3,5,9");
  declare_weights(app, o.source);
  declare_token_set(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  app.add_option("--restarts", o.search.restarts,
                 "random starts, in addition to those that theory suggests")
      ->transform(whole_number(0, 1000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-evaluations", o.search.max_evaluations,
                 "largest number of evaluations of the norm and its gradient "
                 "from each start")
      ->transform(whole_number(1, 100000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.search.budget,
                 "stop all searches together after this many seconds, and show "
                 "what was found; 0: no limit. A search that is stopped may "
                 "differ from run to run")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  app.add_flag("--strict", options.strict,
               "exit code 3 if a search was stopped or its best ascent did not "
               "converge")
      ->group(group);
  app.add_option("--seed", o.source.seed,
                 "seed of random weights, tokens and directions")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);

  declare_output(app, options.output);
  app.add_option("--save-input", o.save_input,
                 "write the best tokens, [n, d], to X.npy (one search only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the direction that they amplify most, [n, d], to V.npy "
                 "(one search only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

Run search_command(CLI::App& app) {
  const auto options = std::make_shared<SearchArguments>();
  declare_search(app, *options);
  return [options] {
    const audit::SearchRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes_matrices(o.save_direction, o.save_input);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome = audit::search(o, records, bar.watch());
    bar.clear();
    conclude(
        options->output, best_of_each(records.rows()),
        {.table = searched_table, .answer = searched_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

}  // namespace lipscope::cli
