// lipscope train: a character-level language model learns a text.

#include "lipscope/audit/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numbers>
#include <optional>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/report/digits.h"
#include "lipscope/report/findings.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

struct TrainArguments {
  audit::TrainRequest request;
  bool invertible = false;
  double contraction = 0.9;  // of an invertible model
  bool spectral_norm = false;
  bool json = false, quiet = false;
  bool force = false;
};

void declare_train(CLI::App& app, TrainArguments& options) {
  audit::TrainRequest& o = options.request;
  app.description(
      "Train a character-level language model whose attention is dot-product, "
      "L2 (tied or not)\nor contractive L2, or an LSTM, and watch its "
      "constants. DIR then holds config.json,\nmodel.safetensors (the best "
      "weights by validation loss) and metrics.jsonl: losses, constants\nand "
      "gradient norms as records, which report draws.\n\n"
      "  lipscope train shakespeare.txt --out runs/l2 --model l2 --steps 2000\n"
      "  lipscope train shakespeare.txt --out runs/l2 --model l2 --steps 4000 "
      "--resume\n"
      "  lipscope report runs/l2/metrics.jsonl\n"
      "  lipscope train shakespeare.txt --out runs/inv --invertible "
      "--context 256\n"
      "  lipscope train book.txt --out runs/small --layers 2 --width 64 "
      "--heads 4 --context 64\n"
      "  lipscope train book.txt --out runs/promised --model position "
      "--heads 4 --layers 2 --mlp-width 512 --norm none --positions none "
      "--residual none --activation max_min --optimizer muon "
      "--singular-values soft --longest-token 16 --max-lipschitz 5 "
      "--promise token");
  app.add_option("TEXT", o.text,
                 "a text in UTF-8: 90 % for training, 5 % for choosing the "
                 "best weights, 5 % for the test")
      ->required();
  app.add_option("--out", o.folder, "the folder of the model")
      ->required()
      ->type_name("DIR");

  const char* group = "Model";
  auto* model = app.add_option("--model", o.model.mixer,
                               "what mixes the characters: dot, l2, l2-untied, "
                               "contractive-l2, position (heads that look by "
                               "distance alone), lstm")
                    ->default_str("dot")
                    ->group(group);
  only(model, by_name({Mixer::dot, Mixer::l2, Mixer::l2_untied,
                       Mixer::contractive_l2, Mixer::position, Mixer::lstm}));
  const auto count = [&](const char* name, Index& value, const char* what) {
    app.add_option(name, value, what)
        ->transform(whole_number(1, Index{1} << 30))
        ->capture_default_str()
        ->group(group);
  };
  count("--layers", o.model.layers, "number of layers");
  count("--width", o.model.width, "number of features of a character");
  count("--heads", o.model.heads,
        "number of attention heads; must divide the width");
  app.add_option("--position-heads", o.model.position_heads,
                 "of the heads, how many look by distance alone, whatever the "
                 "characters are; all with --model position")
      ->transform(whole_number(0, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--heads-apart", o.model.heads_apart,
               "each head writes features of its own, times a learnt share, "
               "and there is no W_O; always so with position heads")
      ->group(group);
  count("--context", o.model.context,
        "number of characters that the model reads at once");
  auto* positions =
      app.add_option("--positions", o.model.positions,
                     "how the model knows where a character stands: table (a "
                     "learnt row is added), rotary (dot), relative (dot, l2, "
                     "l2-untied: heads that compare add a learnt number for "
                     "each distance to their scores), none")
          ->default_str("table")
          ->group(group);
  only(positions, by_name({Positions::table, Positions::rotary,
                           Positions::relative, Positions::none}));
  app.add_option("--mlp-width", o.mlp_width,
                 "width inside the MLP [default: 4 x width]")
      ->transform(whole_number(1, Index{1} << 30))
      ->group(group);
  auto* norm =
      app.add_option(
             "--norm", o.model.norm,
             "place of LayerNorm: post (after each residual), pre, none")
          ->default_str("post")
          ->group(group);
  only(norm, by_name({NormPlace::post, NormPlace::pre, NormPlace::none}));
  auto* residual =
      app.add_option("--residual", o.model.join,
                     "what a layer makes of x and f(x): add (x + f), convex "
                     "((1-a)x + a f), none (f)")
          ->default_str("add")
          ->group(group);
  only(residual, by_name({Join::add, Join::convex, Join::none}));
  app.add_option("--residual-share", o.model.join_share,
                 "a of --residual convex")
      ->transform(number_between(1e-6, 0.999999))
      ->group(group);
  app.add_flag("--head-bias", o.model.head_bias,
               "the head adds a learnt number to each logit, which costs "
               "nothing of a constant")
      ->group(group);
  auto* invertible =
      app.add_flag("--invertible", options.invertible,
                   "a model whose text can be recovered from its last "
                   "activations (lipscope invert): contractive-l2 without "
                   "norms, its MLPs divided by their bound as well, every "
                   "residual x + c f(x)")
          ->group(group);
  app.add_option("--contraction", options.contraction, "c of --invertible")
      ->transform(number_between(1e-6, 0.999999))
      ->needs(invertible)
      ->capture_default_str()
      ->group(group);
  auto* divide =
      app.add_option("--divide", o.model.division,
                     "what contractive-l2 is divided by: layer (one bound for "
                     "all of its output), coordinate (each coordinate of the "
                     "output by a bound of its own; needed with --positions "
                     "relative)")
          ->default_str("layer")
          ->group(group);
  only(divide, by_name({Division::layer, Division::coordinate}));
  app.add_option("--quiet-gain", o.model.quiet_gain,
                 "contractive-l2 with --positions relative begins with "
                 "characters in a quarter of the coordinates; attention writes "
                 "into the others, and norms make that so many times louder")
      ->transform(positive_number())
      ->group(group);
  auto* activation =
      app.add_option("--activation", o.model.activation,
                     "activation of the MLP: gelu, relu, max_min "
                     "(of each pair the larger and the smaller)")
          ->default_str("gelu")
          ->group(group);
  only(activation,
       by_name({Activation::gelu, Activation::relu, Activation::max_min}));

  group = "Training";
  count("--batch", o.training.batch, "sequences per step");
  count("--steps", o.run.steps,
        "number of steps in all; a resumed run may have more");
  app.add_option("--lr", o.training.schedule.rate, "largest learning rate")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup", o.training.schedule.warmup,
                 "number of steps in which the rate rises")
      ->transform(whole_number(0, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  auto* schedule =
      app.add_option("--schedule", o.training.schedule.after,
                     "after the warm-up: inverse-sqrt, fixed, linear (to zero "
                     "at the last step; such a run cannot be made longer)")
          ->default_str("inverse-sqrt")
          ->group(group);
  only(schedule, by_name({Schedule::After::inverse_sqrt, Schedule::After::fixed,
                          Schedule::After::linear}));
  auto* optimizer =
      app.add_option("--optimizer", o.training.optimizer,
                     "adamw, or muon: matrices move by steps whose singular "
                     "values are all near 1, the rest by AdamW")
          ->default_str("adamw")
          ->group(group);
  only(optimizer, by_name({Optimizer::adamw, Optimizer::muon}));
  app.add_option("--muon-lr", o.training.muon.rate,
                 "largest learning rate of Muon")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--weight-decay", o.training.adamw.weight_decay,
                 "weight decay of AdamW, on matrices")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--dropout", o.training.dropout,
         "probability with which a number of a residual branch is dropped")
      ->transform(number_between(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  app.add_option("--clip", o.training.clip,
                 "largest norm of the gradient; 0: no limit")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  app.add_flag("--zero-outputs", o.training.zero_outputs,
               "the matrices by which attention and MLP write begin at zero, "
               "so that every layer begins by adding nothing")
      ->group(group);
  auto* precision =
      app.add_option("--precision", o.training.products,
                     "how much of f32 numbers the products of a step read, "
                     "where the CPU is faster for reading less: full (24 "
                     "bits), high (at least 16), bf16 (at least 8); losses of "
                     "texts and constants are computed with all bits")
          ->default_str("high")
          ->group(group);
  only(precision, by_name({Precision::full, Precision::high, Precision::bf16}));
  count("--eval-every", o.run.eval_every,
        "steps between evaluations; each is also a checkpoint");
  app.add_option("--measure", o.run.measured_characters,
                 "number of characters of the validation text at which each "
                 "layer's constant is measured; 0: not at all")
      ->transform(whole_number(0, Index{1} << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.training.seed,
                 "seed of weights, batches and dropout")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--threads", o.training.threads,
         "number of threads; 0: all cores; the weights do not depend on it")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);

  group = "Limits";
  auto* limit =
      app.add_option("--max-lipschitz", o.training.limits.lipschitz,
                     "keep the certified constant, input of layer 0 -> logits "
                     "(inputs of up to --context characters), at or below this "
                     "at every step; with --norm none, and with --model "
                     "position, l2, or dot and --longest-token")
          ->transform(positive_number())
          ->group(group);
  auto* promise =
      app.add_option("--promise", o.training.limits.norm,
                     "the norm of that constant: 2, or token (the largest "
                     "token, in and out)")
          ->default_str("2")
          ->needs(limit)
          ->group(group);
  only(promise, by_name({Norm::two, Norm::token}));
  app.add_option("--longest-token", o.training.limits.longest_token,
                 "no embedded character is longer than this; with --positions "
                 "rotary, relative or none")
      ->transform(positive_number())
      ->group(group);
  auto* rule =
      app.add_option("--singular-values", o.training.limits.rule,
                     "keep the norm of every matrix at 1, and the head at what "
                     "the constant leaves: free (not so), cap (matrices are "
                     "divided by their norm), soft (a step of Bjorck brings "
                     "all singular values near 1), normalise (to 1)")
          ->default_str("free")
          ->group(group);
  only(rule, by_name({SingularValues::free, SingularValues::cap,
                      SingularValues::soft, SingularValues::normalise}));
  auto* matrices =
      app.add_option("--matrix-limits", o.training.limits.matrices,
                     "the norms of matrices under such a rule: one, or "
                     "newhouse25 (those of that paper, for dot-product heads "
                     "with an output matrix and gelu: 1 between root mean "
                     "squares, scores q.k/k, values a third)")
          ->default_str("one")
          ->group(group);
  only(matrices, by_name({MatrixLimits::one, MatrixLimits::newhouse25}));
  app.add_option("--score-limit", o.training.limits.scores,
                 "with --singular-values and --longest-token R: "
                 "|W_Q W_K^T|R^2/sqrt(k) of heads that compare, about how far "
                 "scores can be from 0; such a dot-product head costs 1 + 2 x "
                 "this of the constant where one by position costs 1")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_flag("--cost", o.cost,
               "also train the same model without the limit, in "
               "DIR/unconstrained, and show the difference in loss")
      ->needs(limit)
      ->group(group);
  auto* cap = app.add_option("--spectral-cap", o.training.limits.spectral,
                             "keep the 2-norm of every weight matrix at or "
                             "below this at every step")
                  ->transform(positive_number())
                  ->group(group);
  app.add_flag("--spectral-norm", options.spectral_norm,
               "the same as --spectral-cap 1")
      ->excludes(cap)
      ->group(group);

  group = "Output";
  app.add_flag("--resume", o.run.resume,
               "go on from the last checkpoint in DIR, if there is one")
      ->group(group);
  app.add_flag("--json", options.json,
               "print the records of metrics.jsonl, no table")
      ->group(group);
  app.add_flag("--quiet", options.quiet, "no progress bar")->group(group);
  app.add_flag("--force", options.force,
               "start again if DIR already holds a model, and also replace "
               "other files there; the text is never replaced")
      ->group(group);
}

std::string row_of(const Evaluation& e) {
  double lower = 0.0;
  for (const LayerConstant& c : e.attention)
    lower = std::max(lower, c.measured.lower);
  return fmt::format(
      "{:>8} {:>10.4f} {:>10.4f} {:>8.4f} {:>9.1f} {:>9.3g} {:>10} {:>9.0f}\n",
      e.step, e.train_nll, e.valid_nll, e.valid_nll / std::numbers::ln2,
      100 * e.valid_accuracy, e.gradient_norm,
      e.attention.empty() ? "-" : fmt::format("{:.4g}", lower),
      e.characters_per_second);
}

// --invertible says what mixes and where norms stand
void make_invertible(const CLI::App& app, TrainArguments& o) {
  if (!o.invertible) return;
  if ((app.count("--model") > 0 &&
       o.request.model.mixer != Mixer::contractive_l2) ||
      (app.count("--norm") > 0 && o.request.model.norm != NormPlace::none))
    throw InputError(
        "--invertible: such a model is contractive-l2 with norm none");
  o.request.model.mixer = Mixer::contractive_l2;
  o.request.model.norm = NormPlace::none;
  o.request.model.contraction = o.contraction;
}

// what is printed while a model learns
class Showing final {
 public:
  explicit Showing(const TrainArguments& options)
      : o_(options), bar_(options.quiet) {}

  audit::TrainWatch watch() {
    audit::TrainWatch watch;
    watch.begins = [this](const std::string& folder) { begin(folder); };
    watch.keep_going = [this](Index done, const StepReport& report) {
      return keep_going(done, report);
    };
    watch.evaluated = [this](const Evaluation& seen) {
      bar_.clear();
      if (!o_.json) fmt::print("{}", row_of(seen));
      std::fflush(stdout);
    };
    if (o_.json)
      watch.record = [](const ordered_json& line) {
        print_out(json_line(line));
      };
    return watch;
  }

  void clear() { bar_.clear(); }

 private:
  void begin(const std::string& folder) {
    bar_.clear();
    start_ = std::chrono::steady_clock::now();
    first_ = -1;
    if (o_.json) return;
    if (folder != o_.request.folder)
      print_text(fmt::format("without the limit, in {}:\n", folder));
    fmt::print("{:>8} {:>10} {:>10} {:>8} {:>9} {:>9} {:>10} {:>9}\n", "step",
               "batch nll", "valid nll", "bpc", "right, %", "|grad|",
               "attention", "chars/s");
  }

  bool keep_going(Index done, const StepReport& report) {
    if (first_ < 0) first_ = done - 1;
    const std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - start_;
    // the run ends after a checkpoint
    if (interrupted()) return false;
    const double characters = static_cast<double>(
        (done - first_) * o_.request.training.batch * o_.request.model.context);
    bar_.show({done, o_.request.run.steps,
               fmt::format("nll {:.3f}, {:.0f} characters/s", report.nll,
                           characters / spent.count())});
    return true;
  }

  const TrainArguments& o_;
  ProgressBar bar_;
  std::chrono::steady_clock::time_point start_ = {};
  Index first_ = -1;
};

std::string finding_of(const audit::Trained& t) {
  const RunSummary& s = t.summary;
  ordered_json fields = {{"best_step", s.best_step},
                         {"best_valid_nll", s.best_valid_nll},
                         {"test_nll", s.test_nll}};
  if (s.promised)
    fields.update(
        {{"limit", s.promised->limit}, {"certified", s.promised->certified}});
  if (t.cost) fields["cost_in_valid_nll"] = t.cost->in_valid_nll();
  return trained_finding(fields);
}

void print_promise(const audit::Trained& t) {
  const PromisedConstant& c = *t.summary.promised;
  const auto norm = [](Norm n) {
    return n == Norm::token ? "token norm" : "2-norm";
  };
  std::string text = fmt::format(
      "certified constant at most {} (promised {:.6g}): input of layer 0 "
      "-> logits, {}, causal, up to {} characters, {}, of the best "
      "weights; embedded characters are at most {:.4g} long: constant times "
      "length {:.4g}; between root mean squares the constant is {:.4g}",
      six_digits_above(c.certified), c.limit, norm(c.norm), t.model.context,
      name_of(c.scope), c.longest_token, c.certified * c.longest_token,
      c.certified_rms());
  if (c.in_other_norm)
    text += fmt::format("; in the {} it is at most {}",
                        norm(c.norm == Norm::two ? Norm::token : Norm::two),
                        six_digits_above(*c.in_other_norm));
  print_lines(text + "\n");
}

// before the work begins
void check_files(const TrainArguments& o) {
  OutputFiles files;
  files.reads(o.request.text, "TEXT");
  files.writes_model(o.request.folder, "--out");
  if (o.request.cost)
    files.writes_model(o.request.folder + "/unconstrained", "--out");
  files.check(o.force);
}

int run_train(TrainArguments& o) {
  o.request.run.anew = o.force;
  if (o.spectral_norm) o.request.training.limits.spectral = 1.0;
  check_files(o);
  Showing showing(o);
  const audit::Trained trained = audit::train(o.request, showing.watch());
  const RunSummary& summary = trained.summary;
  showing.clear();
  if (!summary.finished)
    throw Interrupted(fmt::format("interrupted at step {} of {}", summary.steps,
                                  o.request.run.steps));
  if (o.json) {
    if (trained.cost) print_out(json_line(to_json(*trained.cost)));
    return 0;
  }
  if (summary.promised) print_promise(trained);
  if (trained.cost)
    print_lines(fmt::format(
        "what the limit costs: {:+.4f} nats a character of validation "
        "({:.4f} with it, {:.4f} without)\n",
        trained.cost->in_valid_nll(), summary.best_valid_nll,
        trained.cost->unconstrained.best_valid_nll));
  else if (summary.promised && !o.quiet)
    fmt::print(
        "what the limit costs in loss: the same command with --cost "
        "--resume says it\n");
  const Index measured = o.request.run.measured_characters;
  if (!o.quiet && trained.model.mixer != Mixer::lstm && measured > 0)
    print_lines(fmt::format(
        "'attention' is the largest constant of a layer from below: map attn, "
        "causal, 2-norm, at the first {1} characters of validation text; each "
        "layer's, with its bound from above, is in {0}/metrics.jsonl, which "
        "'lipscope report {0}/metrics.jsonl' draws\n",
        o.request.folder, std::min(measured, trained.model.context)));
  print_lines(fmt::format(
      "last step, whole last tenth of the text: {:.4f} nats a character, "
      "{:.1f} % predicted\n",
      summary.last_tenth.nll, 100 * summary.last_tenth.accuracy));
  if (summary.newhouse25_windows)
    print_lines(fmt::format(
        "last step, Newhouse25's windows (1,280 of 256 characters at the "
        "beginning of the last tenth): {:.4f} nats a character, {:.1f} % "
        "predicted\n",
        summary.newhouse25_windows->nll,
        100 * summary.newhouse25_windows->accuracy));
  print_answer(finding_of(trained));
  return 0;
}

}  // namespace

Run train_command(CLI::App& app) {
  const auto options = std::make_shared<TrainArguments>();
  declare_train(app, *options);
  return [options, &app] {
    make_invertible(app, *options);
    return run_train(*options);
  };
}

}  // namespace lipscope::cli
