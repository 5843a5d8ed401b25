// lipscope certify: how far the predictions of a trained model hold.

#include "lipscope/audit/certify.h"

#include <memory>
#include <vector>

#include "lipscope/cli/certified_table.h"
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

struct CertifyArguments {
  audit::CertifyRequest request;
  std::vector<double> radii = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3};
  OutputOptions output;
};

void declare_certify(CLI::App& app, CertifyArguments& options) {
  audit::CertifyRequest& o = options.request;
  app.description(
      "How far the input of a language model can be changed before its "
      "prediction changes. After\n"
      "every token of a text the model predicts the next one (what lipscope "
      "train makes, the next\n"
      "character). The input is the embeddings of the tokens so far (the input "
      "of layer 0); a change\n"
      "is measured in the Frobenius norm.\n\n"
      "  lower  PROVED: no change within this radius changes the prediction; "
      "proved by\n"
      "         constants of the layers at the states of this text\n"
      "  upper  FOUND: a change of this size changes the prediction; found by "
      "an attack,\n"
      "         evaluated in f64\n\n"
      "lower <= upper is checked at every position. Models with a small "
      "constant (train --model l2\n"
      "--norm none --max-lipschitz L) have useful radii; those of ordinary "
      "models are tiny and shown\n"
      "as powers of ten; for l2-untied no radius is proved.\n\n"
      "  lipscope certify runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope certify runs/dot --text shakespeare.txt --split test "
      "--positions 200 --out dot.jsonl\n"
      "  lipscope certify runs/l2 --text alice.txt --radii 0.01,0.1 --targets "
      "0 --json");
  app.add_option("DIR", o.folder,
                 "a folder made by lipscope train, or of GPT-2")
      ->required();
  declare_text_piece(app, o.text);
  app.add_option("--positions", o.positions,
                 "predictions, from the beginning on; 0: all")
      ->transform(whole_number(0, Index{1} << 40))
      ->capture_default_str();
  app.add_option("--radii", options.radii,
                 "radii at which positions are counted, separated by commas")
      ->delimiter(',')
      ->transform(positive_number())
      ->capture_default_str();

  const char* group = "Attack";
  app.add_option(
         "--targets", o.attack.targets,
         "number of other tokens tried, the nearest first; 0: no attack")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--restarts", o.attack.restarts,
                 "number of further starts, at random changes")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--iterations", o.attack.iterations,
                 "largest number of linearisations from each start")
      ->transform(whole_number(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.attack.seed, "seed of the restarts")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--threads", o.threads,
         "number of threads; 0: all cores; the numbers do not depend on it")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
  declare_output(app, options.output);
}

}  // namespace

Run certify_command(CLI::App& app) {
  const auto options = std::make_shared<CertifyArguments>();
  declare_certify(app, *options);
  return [options] {
    const audit::CertifyRequest& o = options->request;
    OutputFiles files;
    files.reads(o.folder, "DIR");
    files.reads(o.text.text, "--text");
    files.writes(options->output.out, "--out", OutputKind::records);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Certified found = audit::certify(o, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table =
                  [&](const Rows& rows, const View& view) {
                    return certified_table(rows, options->radii, found.constant,
                                           view);
                  },
              .answer = certified_finding(records.rows())});
    return 0;
  };
}

}  // namespace lipscope::cli
