// lipscope bound: what theory allows attention to do, from weights, length and
// radius.

#include "lipscope/audit/bound.h"

#include <memory>

#include "lipscope/cli/bounds_table.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/report/findings.h"

namespace lipscope::cli {
namespace {

struct BoundArguments {
  audit::BoundRequest request;
  OutputOptions output;
};

void declare_bound(CLI::App& app, BoundArguments& options) {
  audit::BoundRequest& o = options.request;
  app.description(
      "Bound the Lipschitz constant of attention from above: show every bound "
      "that is proved for\n"
      "these weights, this number of tokens and this radius, and mark the best "
      "one.\n\n"
      "  lipscope bound --random d=64,heads=4 --lengths 8,64,512 --radius 4\n"
      "  lipscope bound gpt2/ --heads each --length 1024 --out bounds.jsonl\n"
      "  lipscope bound bert/ --map model\n"
      "  lipscope bound --weights layer.safetensors --num-heads 8 --kind l2 "
      "--norm inf\n\n"
      "Dot-product attention is not Lipschitz over all inputs: without "
      "--radius, the answer\n"
      "for a layer is a list of inputs at which its constant grows without "
      "limit.");
  declare_weights(app, o.source);
  declare_token_set(app, o.source);
  declare_selection(app, o.selection);
  app.add_option("--seed", o.source.seed, "seed of random weights")
      ->transform(seed_number())
      ->capture_default_str()
      ->group("How");
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group("How");
  declare_output(app, options.output);
}

}  // namespace

Run bound_command(CLI::App& app) {
  const auto options = std::make_shared<BoundArguments>();
  declare_bound(app, *options);
  return [options] {
    files_of(options->request.source, options->output)
        .check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    audit::bound(options->request, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table = bounds_table,
              .answer = bounds_finding(records.rows()),
              .most = "upper"});
    return 0;
  };
}

}  // namespace lipscope::cli
