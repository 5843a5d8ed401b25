// lipscope train: a character-level language model learns a text.

#include <fmt/format.h>

#include <chrono>
#include <numbers>
#include <optional>
#include <span>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/interrupt.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress.h"
#include "lipscope/cli/training_records.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/table.h"
#include "lipscope/train/training_memory.h"
#include "lipscope/train/training_run.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string text, folder;
  LanguageModelConfig model;
  std::optional<Index> hidden;
  bool invertible = false;
  double contraction = 0.9;  // of an invertible model
  TrainingOptions training;
  RunOptions run;
  bool spectral_norm = false, cost = false;
  bool json = false, quiet = false;
  bool force = false;
};

template <class Enum>
std::vector<std::pair<std::string, Enum>> by_name(
    std::initializer_list<Enum> all) {
  std::vector<std::pair<std::string, Enum>> names;
  for (const Enum e : all) names.emplace_back(name_of(e), e);
  return names;
}

void declare(CLI::App& app, Options& o) {
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
      "  lipscope train book.txt --out runs/promised --model l2 --norm none "
      "--max-lipschitz 100 --cost");
  app.add_option("TEXT", o.text,
                 "a text in UTF-8: 90 % to learn from, 5 % to choose the best "
                 "weights by, 5 % to judge them by")
      ->required();
  app.add_option("--out", o.folder, "the folder of the model")
      ->required()
      ->type_name("DIR");

  const char* group = "Model";
  auto* model = app.add_option("--model", o.model.mixer,
                               "what mixes the characters: dot, l2, l2-untied, "
                               "contractive-l2, lstm")
                    ->default_str("dot")
                    ->group(group);
  only(model, by_name({Mixer::dot, Mixer::l2, Mixer::l2_untied,
                       Mixer::contractive_l2, Mixer::lstm}));
  const auto count = [&](const char* name, Index& value, const char* what) {
    app.add_option(name, value, what)
        ->transform(whole_number(1, Index{1} << 30))
        ->capture_default_str()
        ->group(group);
  };
  count("--layers", o.model.layers, "how many");
  count("--width", o.model.width, "features of a character");
  count("--heads", o.model.heads, "of attention; they divide the width");
  count("--context", o.model.context, "characters that are seen at once");
  app.add_option("--mlp-width", o.hidden, "inside the MLP (default: 4 x width)")
      ->transform(whole_number(1, Index{1} << 30))
      ->group(group);
  auto* norm =
      app.add_option("--norm", o.model.norm,
                     "where LayerNorm stands: post (after each residual), pre, "
                     "none")
          ->default_str("post")
          ->group(group);
  only(norm, by_name({NormPlace::post, NormPlace::pre, NormPlace::none}));
  auto* invertible =
      app.add_flag("--invertible", o.invertible,
                   "a model whose text can be recovered from its last "
                   "activations (lipscope invert): contractive-l2 without "
                   "norms, its MLPs divided by their bound as well, every "
                   "residual x + c f(x)")
          ->group(group);
  app.add_option("--contraction", o.contraction, "c of --invertible")
      ->transform(number_between(1e-6, 0.999999))
      ->needs(invertible)
      ->capture_default_str()
      ->group(group);
  auto* activation = app.add_option("--activation", o.model.activation,
                                    "of the MLP: gelu, relu")
                         ->default_str("gelu")
                         ->group(group);
  only(activation, by_name({Activation::gelu, Activation::relu}));

  group = "Training";
  count("--batch", o.training.batch, "sequences a step");
  count("--steps", o.run.steps, "in all; a resumed run may be given more");
  app.add_option("--lr", o.training.schedule.rate, "largest learning rate")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup", o.training.schedule.warmup,
                 "steps over which the rate rises")
      ->transform(whole_number(0, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  auto* schedule = app.add_option("--schedule", o.training.schedule.after,
                                  "after the warm-up: inverse-sqrt, fixed")
                       ->default_str("inverse-sqrt")
                       ->group(group);
  only(schedule, std::vector<std::pair<std::string, Schedule::After>>{
                     {"inverse-sqrt", Schedule::After::inverse_sqrt},
                     {"fixed", Schedule::After::fixed}});
  app.add_option("--weight-decay", o.training.adamw.weight_decay,
                 "of AdamW, on matrices")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  app.add_option("--dropout", o.training.dropout,
                 "chance with which a number of a residual branch is dropped")
      ->transform(number_between(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  app.add_option("--clip", o.training.clip,
                 "longest gradient; 0: as long as it is")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  count("--eval-every", o.run.eval_every,
        "steps between evaluations; each is also a checkpoint");
  app.add_option("--measure", o.run.measured_characters,
                 "characters of validation text at which each layer's constant "
                 "is measured; 0: not at all")
      ->transform(whole_number(0, Index{1} << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.training.seed, "of weights, batches and dropout")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.training.threads,
                 "0: all cores; the weights do not depend on it")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);

  group = "Limits";
  auto* limit =
      app.add_option("--max-lipschitz", o.training.limits.lipschitz,
                     "keep the certified constant, input of layer 0 -> logits "
                     "(2-norm, all inputs of up to --context characters), at "
                     "or below this at every step; with --model l2 --norm none")
          ->transform(positive_number())
          ->group(group);
  app.add_flag("--cost", o.cost,
               "train the same model without the limit as well, in "
               "DIR/unconstrained, and say what the limit costs")
      ->needs(limit)
      ->group(group);
  auto* cap = app.add_option("--spectral-cap", o.training.limits.spectral,
                             "keep the 2-norm of every weight matrix at or "
                             "below this at every step")
                  ->transform(positive_number())
                  ->group(group);
  app.add_flag("--spectral-norm", o.spectral_norm,
               "the same as --spectral-cap 1")
      ->excludes(cap)
      ->group(group);

  group = "Output";
  app.add_flag("--resume", o.run.resume,
               "go on from the last checkpoint in DIR, if there is one")
      ->group(group);
  app.add_flag("--json", o.json, "print the records of metrics.jsonl, no table")
      ->group(group);
  app.add_flag("--quiet", o.quiet, "no progress bar")->group(group);
  app.add_flag("--force", o.force,
               "begin anew where DIR holds a model already, and replace files "
               "there that are not of such a model; the text is never replaced")
      ->group(group);
}

// all that the weights and metrics.jsonl depend on, but for the steps
ordered_json told(const Options& o, const std::string& text) {
  const TrainingOptions& t = o.training;
  ordered_json json = {{"text_sha256", sha256_text(text)},
                       {"model", name_of(o.model.mixer)},
                       {"layers", o.model.layers},
                       {"width", o.model.width},
                       {"context", o.model.context}};
  if (o.model.mixer != Mixer::lstm) {
    json["heads"] = o.model.heads;
    json["mlp-width"] = o.model.hidden;
    json["norm"] = name_of(o.model.norm);
    json["activation"] = name_of(o.model.activation);
    if (o.model.contraction) json["contraction"] = *o.model.contraction;
  }
  json.update(
      {{"batch", t.batch},
       {"lr", t.schedule.rate},
       {"warmup", t.schedule.warmup},
       {"schedule",
        t.schedule.after == Schedule::After::fixed ? "fixed" : "inverse-sqrt"},
       {"weight-decay", t.adamw.weight_decay},
       {"dropout", t.dropout},
       {"clip", t.clip},
       {"eval-every", o.run.eval_every},
       {"measure", o.run.measured_characters},
       {"seed", t.seed}});
  if (t.limits.lipschitz) json["max-lipschitz"] = *t.limits.lipschitz;
  if (t.limits.spectral) json["spectral-cap"] = *t.limits.spectral;
  return json;
}

std::string row_of(const Evaluation& e) {
  double lower = 0.0;
  for (const LayerConstant& c : e.attention)
    lower = std::max(lower, c.measured.lower);
  return fmt::format(
      "{:>8} {:>10.4f} {:>10.4f} {:>8.4f} {:>9.3g} {:>10} {:>9.0f}\n", e.step,
      e.train_nll, e.valid_nll, e.valid_nll / std::numbers::ln2,
      e.gradient_norm, e.attention.empty() ? "-" : fmt::format("{:.4g}", lower),
      e.characters_per_second);
}

// --invertible says what mixes and where norms stand
void make_invertible(const CLI::App& app, Options& o) {
  if (!o.invertible) return;
  if ((app.count("--model") > 0 && o.model.mixer != Mixer::contractive_l2) ||
      (app.count("--norm") > 0 && o.model.norm != NormPlace::none))
    throw InputError(
        "--invertible: such a model is contractive-l2 with norm none");
  o.model.mixer = Mixer::contractive_l2;
  o.model.norm = NormPlace::none;
  o.model.contraction = o.contraction;
}

// trains in that folder, showing it
RunSummary train_shown(Options o, const std::string& folder,
                       const std::string& text, const Corpus& corpus) {
  const ModelDescription description{.config = o.model,
                                     .vocabulary = corpus.vocabulary,
                                     .training = told(o, text)};

  Progress progress(o.run.steps, o.quiet);
  const auto start = std::chrono::steady_clock::now();
  Index first = -1;
  o.run.keep_going = [&](Index done, const StepReport& report) {
    if (first < 0) first = done - 1;
    const std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - start;
    // the run ends after a checkpoint
    if (interrupted()) return false;
    progress.show(
        done,
        fmt::format("nll {:.3f}, {:.0f} characters/s", report.nll,
                    static_cast<double>((done - first) * o.training.batch *
                                        o.model.context) /
                        spent.count()));
    return true;
  };
  if (!o.json)
    fmt::print("{:>8} {:>10} {:>10} {:>8} {:>9} {:>10} {:>9}\n", "step",
               "batch nll", "valid nll", "bpc", "|grad|", "attention",
               "chars/s");
  o.run.seen = [&](const Evaluation& seen) {
    progress.clear();
    if (!o.json) fmt::print("{}", row_of(seen));
    std::fflush(stdout);
  };
  o.run.metrics =
      training_metrics({.folder = folder,
                        .model = o.model,
                        .seed = o.training.seed,
                        .limited = o.training.limits.lipschitz.has_value()},
                       o.json);
  const RunSummary summary =
      train_in_folder(folder, description, corpus, o.training, o.run);
  if (!summary.finished)
    throw Interrupted(fmt::format("interrupted at step {} of {}", summary.steps,
                                  o.run.steps));
  return summary;
}

std::string finding_of(const RunSummary& s,
                       const std::optional<ordered_json>& cost) {
  ordered_json fields = {{"best_step", s.best_step},
                         {"best_valid_nll", s.best_valid_nll},
                         {"test_nll", s.test_nll}};
  if (s.promised)
    fields.update(
        {{"limit", s.promised->limit}, {"certified", s.promised->certified}});
  if (cost) fields["cost_in_valid_nll"] = (*cost)["cost_in_valid_nll"];
  return trained_finding(fields);
}

// the same without the limit, and the difference
ordered_json cost_of_limit(const Options& o, const RunSummary& limited,
                           const std::string& text, const Corpus& corpus) {
  Options free = o;
  free.training.limits.lipschitz = {};
  const std::string folder = o.folder + "/unconstrained";
  if (!o.json) print_text(fmt::format("without the limit, in {}:\n", folder));
  const RunSummary other = train_shown(free, folder, text, corpus);
  ordered_json cost = {
      {"max_lipschitz", *o.training.limits.lipschitz},
      {"steps", limited.steps},
      {"best_valid_nll", limited.best_valid_nll},
      {"test_nll", limited.test_nll},
      {"unconstrained_best_valid_nll", other.best_valid_nll},
      {"unconstrained_test_nll", other.test_nll},
      {"cost_in_valid_nll", limited.best_valid_nll - other.best_valid_nll}};
  const std::string line = cost.dump(2) + "\n";
  AtomicFile file(o.folder + "/cost.json");
  file.write(std::as_bytes(std::span(line)));
  file.commit();
  return cost;
}

void print_promise(const Options& o, const PromisedConstant& c) {
  print_lines(fmt::format(
      "certified constant at most {:.6g} (promised {:.6g}): input of layer 0 "
      "-> logits, 2-norm, causal, up to {} characters, {}, of the best "
      "weights; embedded characters are at most {:.4g} long\n",
      c.certified, c.limit, o.model.context, c.scope, c.longest_token));
}

// before the work begins
void check_files(const Options& o) {
  OutputFiles files;
  files.reads(o.text, "TEXT");
  files.writes_model(o.folder, "--out");
  if (o.cost) files.writes_model(o.folder + "/unconstrained", "--out");
  files.check(o.force);
}

int run(Options& o) {
  o.run.anew = o.force;
  if (o.spectral_norm) o.training.limits.spectral = 1.0;
  if (const std::string why = objection(o.training.limits, o.model);
      !why.empty())
    throw InputError(fmt::format(
        "{}: {}",
        o.training.limits.lipschitz ? "--max-lipschitz" : "--spectral-cap",
        why));
  check_files(o);
  const std::string text = read_text_file(o.text);
  // before the text is cut up: the smallest model that this can be
  o.model.characters = 2;
  o.model.hidden = o.hidden.value_or(4 * o.model.width);
  require_training_memory(o.model, o.training, "train");
  const Corpus corpus = corpus_of(text, o.model.context, o.text);
  o.model.characters = corpus.vocabulary.size();
  const RunSummary summary = train_shown(o, o.folder, text, corpus);
  std::optional<ordered_json> cost;
  if (o.cost) cost = cost_of_limit(o, summary, text, corpus);

  if (o.json) {
    if (cost) print_out(json_line(*cost));
    return 0;
  }
  if (summary.promised) print_promise(o, *summary.promised);
  if (cost)
    print_lines(fmt::format(
        "what the limit costs: {:+.4f} nats a character of validation "
        "({:.4f} with it, {:.4f} without)\n",
        (*cost)["cost_in_valid_nll"].get<double>(), summary.best_valid_nll,
        (*cost)["unconstrained_best_valid_nll"].get<double>()));
  else if (summary.promised && !o.quiet)
    fmt::print(
        "what the limit costs in loss: the same command with --cost "
        "--resume says it\n");
  if (!o.quiet && o.model.mixer != Mixer::lstm && o.run.measured_characters > 0)
    print_lines(fmt::format(
        "'attention' is the largest constant of a layer from below: map attn, "
        "causal, 2-norm, at the first {1} characters of validation text; each "
        "layer's, with its bound from above, is in {0}/metrics.jsonl, which "
        "'lipscope report {0}/metrics.jsonl' draws\n",
        o.folder, std::min(o.run.measured_characters, o.model.context)));
  print_answer(finding_of(summary, cost));
  return 0;
}

}  // namespace

Run train_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options, &app] {
    make_invertible(app, *options);
    return run(*options);
  };
}

}  // namespace lipscope::cli
