#include "lipscope/cli/measure_options.h"

#include "lipscope/cli/numbers.h"
#include "lipscope/cli/solver.h"

namespace lipscope::cli {

void declare_measure(CLI::App& app, MeasureCommandOptions& o) {
  app.description(
      "Measure the local Lipschitz constant of attention: the norm of its "
      "Jacobian at given\ntokens, from below with a witness and from above "
      "with a proof.\n\n"
      "  lipscope measure bert/ --text alice.txt --lengths 8,32,128 --heads "
      "each\n"
      "  lipscope measure gpt2/ --text alice.txt --map block --layers 0,6,11\n"
      "  lipscope measure --random d=768,heads=12 --length 128 --enclose 1.05\n"
      "  lipscope measure --weights layer.safetensors --num-heads 12 --mask "
      "causal \\\n      --input x.npy --save-direction v.npy");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  declare_solver(app, o.solver, group);
  app.add_option(
         "--certificate", o.certificate,
         "what proves 'upper' where the Jacobian is too large to decompose. "
         "auto: own_split for a layer and own_blocks for a head of "
         "dot-product attention, the best bound over the ball that holds the "
         "input for other kinds; split, blocks (of a layer: seconds at 32 "
         "tokens), local: that one; all: each of them, the best counts; none")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.budget,
                 "stop after this many seconds with what was found")
      ->transform(positive_number())
      ->group(group);
  declare_effort(app, o.strict, o.source.seed, o.solver.threads, group);

  app.add_option(
         "--memory", o.memory,
         "bytes that attention weights may take in each precision, e.g. "
         "2G; beyond, they are rebuilt at every product. Default: a "
         "quarter of the machine's")
      ->transform(byte_size())
      ->type_name("BYTES")
      ->group(group);

  declare_output(app, o.output);
  app.add_flag("--tokens", o.tokens,
               "say in each record how much of the worst change sits on each "
               "token, going in and coming out, and up to 32 tokens how much "
               "goes from each to each; 'report' shows them in the text")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the witness, [n, d], to V.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace lipscope::cli
