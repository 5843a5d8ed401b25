// lipscope measure: how sharply attention reacts at given inputs.

#include "lipscope/audit/measure.h"

#include <memory>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/measured_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/report/bound_names.h"
#include "lipscope/report/findings.h"

namespace lipscope::cli {
namespace {

struct MeasureArguments {
  audit::MeasureRequest request;
  OutputOptions output;
  bool strict = false;
};

void declare_measure(CLI::App& app, MeasureArguments& options) {
  audit::MeasureRequest& o = options.request;
  app.description(
      "Measure the local Lipschitz constant of attention: the norm of its "
      "Jacobian at given\n"
      "tokens. 'lower' comes with a direction that reaches it, 'upper' with a "
      "proof.\n\n"
      "  lipscope measure bert/ --text alice.txt --lengths 8,32,128 --heads "
      "each\n"
      "  lipscope measure gpt2/ --text alice.txt --map block --layers 0,6,11\n"
      "  lipscope measure --random d=768,heads=12 --length 128 --enclose 1.05\n"
      "  lipscope measure --weights layer.safetensors --num-heads 12 --mask "
      "causal \\\n"
      "      --input x.npy --save-direction v.npy");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  declare_solver(app, o.solver, group);
  app.add_option(
         "--certificate", o.certificate,
         "what proves 'upper' where the Jacobian is too large to decompose. "
         "auto: split_paths for a layer and token_pairs for a head of "
         "dot-product attention, the best bound over the ball that contains "
         "the input for other kinds; split, pairs (seconds for a layer at 32 "
         "tokens) or covariances: only this one; all: all of them, the best "
         "counts; none")
      ->transform(present_certificate_word, "")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.budget,
                 "stop after this many seconds, and show what was found")
      ->transform(positive_number())
      ->group(group);
  declare_effort(app, options.strict, o.source.seed, o.solver.threads, group);

  app.add_option("--memory", o.memory,
                 "bytes that attention weights may take in each precision, "
                 "e.g. 2G; if they need more, every product computes them "
                 "again [default: a quarter of the machine's memory]")
      ->transform(byte_size())
      ->type_name("BYTES")
      ->group(group);

  declare_output(app, options.output);
  app.add_flag("--tokens", o.tokens,
               "record how much of the worst change belongs to each token, at "
               "the input and at the output, and for up to 32 tokens how much "
               "goes from each token to each; 'report' shows this in the text")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the direction of 'lower', [n, d], to V.npy (one "
                 "measurement only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

Run measure_command(CLI::App& app) {
  const auto options = std::make_shared<MeasureArguments>();
  declare_measure(app, *options);
  return [options] {
    const audit::MeasureRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes_matrices(o.save_direction, o.save_input);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome = audit::measure(o, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table =
                  [&](const Rows& rows, const View& view) {
                    return measured_table(rows, view) +
                           growth_table(records.fits(), view);
                  },
              .answer = measured_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

}  // namespace lipscope::cli
