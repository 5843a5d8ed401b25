// lipscope measure: how sharply attention reacts at given inputs.

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/selection.h"
#include "lipscope/cli/source.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"

namespace lipscope::cli {
namespace {

struct Options {
  SourceOptions source;
  SelectionOptions selection;
  MeasureOptions solver;
  OutputOptions output;
  std::string save_direction, save_input;
  double budget = 0.0;
  std::uint64_t memory = 0;
  bool strict = false;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "Measure the local Lipschitz constant of one attention layer: the norm "
      "of "
      "its\nJacobian at given tokens, from below with a witness and, where "
      "that "
      "can be\nsaid, from above.\n\n"
      "  lipscope measure --random d=768,heads=12 --length 128 --enclose 1.05\n"
      "  lipscope measure --weights layer.safetensors --num-heads 12 --mask "
      "causal \\\n      --input x.npy --save-direction v.npy");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  app.add_option("--tolerance", o.solver.tolerance,
                 "done when the relative residual is below this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-steps", o.solver.max_steps,
                 "Golub-Kahan steps before giving up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--enclose", o.solver.enclose,
                 "go on until 'upper (whp)' is within this factor of 'lower', "
                 "e.g. 1.05")
      ->check(CLI::Range(1.0 + 1e-6, 1e6))
      ->group(group);
  app.add_option("--delta", o.solver.delta,
                 "chance with which 'upper (whp)' may fail")
      ->check(CLI::Range(1e-300, 0.5))
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.budget,
                 "stop after this many seconds with what was found")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_flag("--strict", o.strict, "exit code 3 if anything did not converge")
      ->group(group);
  app.add_option("--seed", o.source.seed,
                 "of random weights, tokens and starting vectors")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.solver.threads, "0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(group);

  app.add_option(
         "--memory", o.memory,
         "bytes that attention weights may take in each precision, e.g. "
         "2G; beyond, they are rebuilt at every product. Default: a "
         "quarter of the machine's")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES")
      ->group(group);

  declare_output(app, o.output);
  app.add_option("--save-direction", o.save_direction,
                 "write the witness, [n, d], to V.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
}

// one question: these tokens, that head
Record question(const Options& o, const Layer& layer, const Selection& s) {
  Record r;
  r.command = "measure";
  r.model = layer.name;
  r.model_sha256 = layer.sha256;
  r.map = s.project ? "attn" : "core";
  r.kind = name_of(layer.kind);
  r.mask = name_of(s.mask);
  r.norm = s.norm;
  r.d = layer.weights.features();
  if (s.norm == "2") r.delta = o.solver.delta;
  r.scope = "input";
  r.dtype = "f64";  // given and generated tokens are what they are, in f64
  r.seed = o.source.seed;
  return r;
}

void describe(Record& r, const Tokens& tokens) {
  const Vector norms = tokens.x.rowwise().norm();
  r.n = tokens.x.rows();
  r.sample = tokens.sample;
  r.radius_max = norms.maxCoeff();
  r.radius_rms = std::sqrt(norms.squaredNorm() / static_cast<double>(r.n));
}

// fills in the answer and returns the witness
Vector answer(Record& r, const Measurement& m) {
  r.lower = m.lower;
  r.lower_by = m.lower_by;
  r.upper = m.upper;
  if (m.upper && *m.upper > 0) r.upper_log10 = std::log10(*m.upper);
  r.upper_by = m.upper_by;
  r.upper_whp = m.upper_whp;
  r.residual = m.residual;
  r.steps = m.steps;
  r.converged = m.converged;
  return m.direction;
}

// every row is summed, so the value is the norm itself up to rounding, for
// which the bound from above leaves room
Vector answer(Record& r, const InfNorm& m) {
  r.lower = m.value;
  r.lower_by = r.upper_by = "row-sweep";
  r.upper = m.value * (1 + 1e-9);
  if (m.value > 0) r.upper_log10 = std::log10(*r.upper);
  r.steps = m.rows;
  return m.direction;
}

int run(Options o) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  const auto time_left = [&] {
    return o.budget == 0.0 || elapsed() < o.budget;
  };

  const Layer layer = load_layer(o.source);
  const Selection selection = select(o.selection, layer);
  const TokenSource source(o.source, layer);
  const Index total =
      source.size() * static_cast<Index>(selection.heads.size());
  if (total > 1 && !(o.save_direction + o.save_input).empty())
    throw InputError(
        fmt::format("--save-direction and --save-input take one measurement; "
                    "these are {}",
                    total));

  Records records(o.output);
  Progress progress(total, o.output.quiet);
  Index done = 0;
  std::string doing;
  bool all_converged = true;
  o.solver.seed = o.source.seed;
  o.solver.keep_going = [&](int step) {
    progress.show(done, fmt::format("{}, step {}", doing, step));
    return time_left();
  };
  for (Index i = 0; i < source.size(); ++i) {
    const Tokens tokens = source.at(i);
    Record r = question(o, layer, selection);
    describe(r, tokens);
    for (const std::optional<Index>& head : selection.heads) {
      doing = fmt::format("n = {}", r.n);
      progress.show(done, doing);
      r.head = head;
      if (records.has(r)) {
        ++done;
        continue;
      }
      if (!time_left()) {
        all_converged = false;
        continue;
      }

      AttentionOptions options{.kind = layer.kind,
                               .mask = selection.mask,
                               .project = selection.project,
                               .cosine = layer.cosine,
                               .threads = o.solver.threads,
                               .memory = o.memory};
      if (head) options.heads = {*head};
      const MultiHeadAttention<double> witness(layer.weights, options);
      const double before = elapsed();
      Record answered = r;
      Vector direction;
      if (selection.norm == "inf") {
        direction = answer(answered, inf_norm(*witness.linearize(tokens.x),
                                              {.threads = o.solver.threads}));
      } else {
        const MultiHeadAttention<float> search(layer.weights, options);
        direction =
            answer(answered, measure_norm(search, witness, tokens.x, o.solver));
      }
      answered.seconds = elapsed() - before;
      all_converged = all_converged && answered.converged;

      // what was asked for beside the record is there when the record is
      if (!o.save_direction.empty())
        write_npy(o.save_direction,
                  unflatten(direction, tokens.x.rows(), tokens.x.cols()));
      if (!o.save_input.empty()) write_npy(o.save_input, tokens.x);
      records.add(answered);
      ++done;
    }
  }
  records.print_table();
  return o.strict && !all_converged ? 3 : 0;
}

}  // namespace

Run measure_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] { return run(*options); };
}

}  // namespace lipscope::cli
