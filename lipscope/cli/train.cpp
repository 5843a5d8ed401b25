// lipscope train: a character-level language model learns a text.

#include <fmt/format.h>

#include <chrono>
#include <numbers>
#include <optional>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/training_records.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/sha256.h"
#include "lipscope/report/table.h"
#include "lipscope/train/training_run.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string text, folder;
  LanguageModelConfig model;
  std::optional<Index> hidden;
  TrainingOptions training;
  RunOptions run;
  bool json = false, quiet = false;
};

template <class Enum>
std::map<std::string, Enum> by_name(std::initializer_list<Enum> all) {
  std::map<std::string, Enum> names;
  for (const Enum e : all) names[name_of(e)] = e;
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
      "  lipscope train book.txt --out runs/small --layers 2 --width 64 "
      "--heads 4 --context 64");
  app.add_option("TEXT", o.text,
                 "a text in UTF-8: 90 % to learn from, 5 % to choose the best "
                 "weights by, 5 % to judge them by")
      ->required();
  app.add_option("--out", o.folder, "the folder of the model")
      ->required()
      ->type_name("DIR");

  const char* group = "Model";
  app.add_option("--model", o.model.mixer,
                 "what mixes the characters: dot, l2, l2-untied, "
                 "contractive-l2, lstm")
      ->transform(CLI::CheckedTransformer(
          by_name({Mixer::dot, Mixer::l2, Mixer::l2_untied,
                   Mixer::contractive_l2, Mixer::lstm})))
      ->default_str("dot")
      ->group(group);
  const auto count = [&](const char* name, Index& value, const char* what) {
    app.add_option(name, value, what)
        ->check(CLI::Range(Index{1}, Index{1} << 30))
        ->capture_default_str()
        ->group(group);
  };
  count("--layers", o.model.layers, "how many");
  count("--width", o.model.width, "features of a character");
  count("--heads", o.model.heads, "of attention; they divide the width");
  count("--context", o.model.context, "characters that are seen at once");
  app.add_option("--mlp-width", o.hidden, "inside the MLP (default: 4 x width)")
      ->check(CLI::Range(Index{1}, Index{1} << 30))
      ->group(group);
  app.add_option("--norm", o.model.norm,
                 "where LayerNorm stands: post (after each residual), pre, "
                 "none")
      ->transform(CLI::CheckedTransformer(
          by_name({NormPlace::post, NormPlace::pre, NormPlace::none})))
      ->default_str("post")
      ->group(group);
  app.add_option("--activation", o.model.activation, "of the MLP: gelu, relu")
      ->transform(CLI::CheckedTransformer(
          by_name({Activation::gelu, Activation::relu})))
      ->default_str("gelu")
      ->group(group);

  group = "Training";
  count("--batch", o.training.batch, "sequences a step");
  count("--steps", o.run.steps, "in all; a resumed run may be given more");
  app.add_option("--lr", o.training.schedule.rate, "largest learning rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup", o.training.schedule.warmup,
                 "steps over which the rate rises")
      ->check(CLI::Range(Index{0}, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  app.add_option("--schedule", o.training.schedule.after,
                 "after the warm-up: inverse-sqrt, fixed")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Schedule::After>{
              {"inverse-sqrt", Schedule::After::inverse_sqrt},
              {"fixed", Schedule::After::fixed}}))
      ->default_str("inverse-sqrt")
      ->group(group);
  app.add_option("--weight-decay", o.training.adamw.weight_decay,
                 "of AdamW, on matrices")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--dropout", o.training.dropout,
                 "chance with which a number of a residual branch is dropped")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  app.add_option("--clip", o.training.clip,
                 "longest gradient; 0: as long as it is")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  count("--eval-every", o.run.eval_every,
        "steps between evaluations; each is also a checkpoint");
  app.add_option("--measure", o.run.measured_characters,
                 "characters of validation text at which each layer's constant "
                 "is measured; 0: not at all")
      ->check(CLI::Range(Index{0}, Index{1} << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.training.seed, "of weights, batches and dropout")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.training.threads,
                 "0: all cores; the weights do not depend on it")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(group);

  group = "Output";
  app.add_flag("--resume", o.run.resume,
               "go on from the last checkpoint in DIR, if there is one")
      ->group(group);
  app.add_flag("--json", o.json, "print the records of metrics.jsonl, no table")
      ->group(group);
  app.add_flag("--quiet", o.quiet, "no progress bar")->group(group);
}

// all that the weights depend on
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
       {"seed", t.seed}});
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

int run(Options& o) {
  const std::string text = read_text(o.text);
  const Corpus corpus = corpus_of(text, o.model.context, o.text);
  o.model.characters = corpus.vocabulary.size();
  o.model.hidden = o.hidden.value_or(4 * o.model.width);
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
    if (!o.json) fmt::print("{}", row_of(seen));
    std::fflush(stdout);
  };
  o.run.metrics =
      training_metrics({o.folder, o.model, o.training.seed}, o.json);
  const RunSummary summary =
      train_in_folder(o.folder, description, corpus, o.training, o.run);

  if (o.json) return 0;
  fmt::print(
      "best at step {}: validation {:.4f} nats a character ({:.4f} bits), test "
      "{:.4f} ({:.4f} bits)\n",
      summary.best_step, summary.best_valid_nll,
      summary.best_valid_nll / std::numbers::ln2, summary.test_nll,
      summary.test_nll / std::numbers::ln2);
  if (!o.quiet && o.model.mixer != Mixer::lstm && o.run.measured_characters > 0)
    fmt::print(
        "'attention' is the largest constant of a layer from below: map attn, "
        "causal, 2-norm, at the\nfirst {1} characters of validation text; each "
        "layer's, with its bound from above, is in\n{0}/metrics.jsonl, which "
        "'lipscope report {0}/metrics.jsonl' draws\n",
        o.folder, std::min(o.run.measured_characters, o.model.context));
  return 0;
}

}  // namespace

Run train_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] { return run(*options); };
}

}  // namespace lipscope::cli
