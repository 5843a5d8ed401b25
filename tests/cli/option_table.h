#pragma once

#include <string>
#include <vector>

/// For every option of every command: two ways to say it that ask two
/// questions, or why it cannot change a number.
namespace lipscope::test {

enum class Effect {
  changes_key,    ///< `one` and `two` are different questions
  keeps_records,  ///< they are the same question, with the same records
  refused  ///< of train: a run begun with `one` does not go on with `two`
};

struct OptionRow {
  std::string command, option;
  Effect effect;
  /// Arguments without and with the option; {name} is a file of the test.
  std::string base, one, two;
  /// Why it cannot change a number. With it `one` and `two` may be empty:
  /// nothing is run then.
  std::string reason = {};
};

inline std::vector<OptionRow> option_table() {
  std::vector<OptionRow> rows;
  const auto add = [&](Effect effect) {
    return [&rows, effect](const std::string& command,
                           const std::string& option, const std::string& base,
                           const std::string& one, const std::string& two) {
      rows.push_back({command, option, effect, base, one, two});
    };
  };
  const auto changes = add(Effect::changes_key);
  const auto refused = add(Effect::refused);
  const auto same = [&](const std::string& command, const std::string& option,
                        const std::string& reason, const std::string& base = {},
                        const std::string& one = {},
                        const std::string& two = {}) {
    rows.push_back(
        {command, option, Effect::keeps_records, base, one, two, reason});
  };

  // ---- options that several commands share
  const std::string layer = "--random d=4,heads=2,scale=1 --length 3 ",
                    stored = "--weights {w} --num-heads 2 ",
                    // of two layers; a window of three tokens
      model = "{model} --lengths 3 --samples 1 --text {text} ",
                    cosine = layer + "--kind cosine ";
  const auto weights = [&](const std::string& c, const std::string& more) {
    const std::string length =
        c == "bound" || c == "search" ? "--length 3 " : "";
    changes(c, "--weights", "--num-heads 2 " + length + more, "--weights {w}",
            "--weights {other w}");
    changes(c, "--random", "--length 3 " + more, "--random d=4,heads=2,scale=1",
            "--random d=4,heads=1,scale=1");
    changes(c, "--num-heads", "--weights {w} " + length + more, "--num-heads 1",
            "--num-heads 2");
    changes(c, "--tau", cosine + more, "--tau 3", "--tau 5");
    changes(c, "--nu", cosine + more, "--nu 1", "--nu 2");
    changes(c, "--epsilon", cosine + more, "--epsilon 1e-6", "--epsilon 0.1");
    changes(c, "--length", "--random d=4,heads=2,scale=1 " + more, "--length 3",
            "--length 4");
    changes(c, "--mask", layer + more, "--mask none", "--mask causal");
    if (c == "meanfield") {
      same(c, "--window", "a map of measures has no window");
      same(c, "--padding", "a map of measures has no padding");
    } else {
      changes(c, "--window", layer + more, "--window 1", "--window 2");
      // tied L2 attention is not Lipschitz with padding
      changes(c, "--padding", layer + "--kind dot " + more, "--padding 0:1",
              "--padding 1:0");
    }
    changes(c, "--seed", layer + more, "--seed 0", "--seed 1");
    same(c, "--threads", "work is cut into the same pieces for any number",
         layer + more, "--threads 1", "--threads 2");
  };
  const auto tokens = [&](const std::string& c, const std::string& more) {
    changes(c, "--text", "{model} --lengths 3 --samples 1 " + more,
            "--text {text}", "--text {other text}");
    changes(c, "--ids", "{model} --lengths 3 --samples 1 " + more,
            "--ids {ids}", "--ids {other ids}");
    // the same rows in another order
    changes(c, "--input", stored + more, "--input {x}", "--input {other x}");
    changes(c, "--embedded", "{model} --layers 1 " + more, "--embedded {m}",
            "--embedded {other m}");
    changes(c, "--samples", layer + more, "--samples 1", "--samples 2");
    changes(c, "--offset", model + more, "--offset 0", "--offset 1");
    changes(c, "--radius", layer + more, "--radius 1", "--radius 2");
    changes(c, "--dtype", model + more, "--dtype f32", "--dtype f64");
    changes(c, "--layers", model + more, "--layers 0", "--layers 1");
  };
  const auto solver = [&](const std::string& c, const std::string& more) {
    changes(c, "--tolerance", layer + more, "--tolerance 1e-5",
            "--tolerance 1e-3");
    changes(c, "--max-steps", layer + more, "--max-steps 300", "--max-steps 3");
    changes(c, "--enclose", layer + more, "--enclose none", "--enclose 1.5");
    changes(c, "--delta", layer + more, "--delta 1e-10", "--delta 1e-3");
  };
  const auto saved = [&](const std::string& c, const std::string& option) {
    same(c, option, "writes what was found beside the record");
  };
  const auto output = [&](const std::string& c) {
    same(c, "--json", "how records are shown");
    same(c, "--out", "where records go");
    same(c, "--resume", "what is known is not asked again");
    same(c, "--quiet", "what is said about the run");
    same(c, "--help", "asks nothing");
    same(c, "--force", "which files may be replaced");
    if (c == "train") return;
    for (const char* option : {"--csv", "--wide"})
      same(c, option, "how records are shown");
    if (c == "reproduce") return;  // a figure has no rows to choose from
    for (const char* option : {"--sort", "--top"})
      same(c, option, "which rows are shown, and in which order");
  };
  const auto planned = [&](const std::string& c) {
    same(c, "--plan", "which questions are answered, not what they ask");
    same(c, "--shard", "which questions are answered, not what they ask");
  };
  const auto strict = [&](const std::string& c) {
    same(c, "--strict", "chooses the exit code");
  };

  // ---- measure
  weights("measure", "");
  tokens("measure", "");
  solver("measure", "");
  changes("measure", "--kind", layer, "--kind dot", "--kind l2");
  changes("measure", "--map", layer, "--map attn", "--map core");
  changes("measure", "--heads", layer, "--heads 0", "--heads 1");
  changes("measure", "--norm", layer, "--norm 2", "--norm inf");
  changes("measure", "--certificate", layer, "", "--certificate all");
  changes("measure", "--tokens", layer, "", "--tokens");
  // 1024 unknowns, and room for eight vectors
  changes("measure", "--memory", "--random d=64,heads=2 --length 16", "",
          "--memory 1");
  same("measure", "--budget", "what a budget cuts is no answer", layer,
       "--budget 1000", "--budget 2000");
  strict("measure");
  output("measure");
  planned("measure");
  saved("measure", "--save-direction");
  saved("measure", "--save-input");

  // ---- bound
  const std::string ball = "--radius 1 ";
  weights("bound", ball);
  changes("bound", "--kind", layer + ball, "--kind dot", "--kind sigmoid");
  changes("bound", "--map", layer + ball, "--map attn", "--map core");
  changes("bound", "--layers", "{model} --length 3", "--layers 0",
          "--layers 1");
  changes("bound", "--heads", layer + ball, "--heads 0", "--heads 1");
  changes("bound", "--norm", layer + ball, "--norm 2", "--norm token");
  changes("bound", "--radius", layer, "--radius 1", "--radius 2");
  output("bound");
  planned("bound");

  // ---- search
  const std::string little = "--restarts 1 --max-evaluations 10 --budget 0 ",
                    region = ball + little;
  weights("search", region);
  changes("search", "--kind", layer + region, "--kind dot", "--kind sigmoid");
  changes("search", "--map", layer + region, "--map attn", "--map core");
  changes("search", "--layers", "{model} --length 3 " + little, "--layers 0",
          "--layers 1");
  changes("search", "--heads", layer + region, "--heads 0", "--heads 1");
  changes("search", "--norm", layer + region, "--norm 2", "--norm inf");
  changes("search", "--radius", layer + little, "--radius 1", "--radius 2");
  changes("search", "--restarts", layer + ball + "--max-evaluations 10 ",
          "--restarts 1", "--restarts 2");
  changes("search", "--max-evaluations", layer + ball + "--restarts 1 ",
          "--max-evaluations 10", "--max-evaluations 20");
  same("search", "--budget", "what a budget cuts is no answer",
       layer + ball + "--restarts 1 --max-evaluations 10", "--budget 0",
       "--budget 1000");
  strict("search");
  output("search");
  planned("search");
  saved("search", "--save-direction");
  saved("search", "--save-input");

  // ---- meanfield
  weights("meanfield", "");
  tokens("meanfield", "");
  solver("meanfield", "");
  changes("meanfield", "--kind", layer, "--kind dot", "--kind l2");
  changes("meanfield", "--map", layer, "--map attn", "--map core");
  changes("meanfield", "--heads", layer, "--heads 0", "--heads 1");
  changes("meanfield", "--step", layer, "--step 1e-7", "--step 1e-5");
  changes("meanfield", "--duplicate", layer, "--duplicate 2", "--duplicate 3");
  const std::string masses = layer + "--step 0 --optimise-masses ";
  changes("meanfield", "--optimise-masses", layer + "--step 0 --restarts 1 ",
          "", "--optimise-masses");
  changes("meanfield", "--move-atoms", masses + "--restarts 1 ",
          "--move-atoms 5", "--move-atoms 6");
  changes("meanfield", "--restarts", masses, "--restarts 1", "--restarts 2");
  strict("meanfield");
  output("meanfield");
  saved("meanfield", "--save-direction");
  saved("meanfield", "--save-input");

  // ---- invert
  weights("invert", "--scale 0.1 ");
  tokens("invert", "");
  changes("invert", "--kind", layer + "--scale 0.1", "--kind contractive-l2",
          "--kind dot");
  changes("invert", "--norm", layer, "--norm inf", "--norm 2");
  changes("invert", "--scale", layer, "--scale 0.5", "--scale 0.4");
  changes("invert", "--depth", layer, "--depth 1", "--depth 2");
  changes("invert", "--tolerance", layer, "--tolerance 1e-10",
          "--tolerance 1e-3");
  changes("invert", "--max-iterations", layer, "--max-iterations 1000",
          "--max-iterations 1");
  changes("invert", "--log-det", layer, "", "--log-det");
  changes("invert", "--probes", layer + "--log-det", "--probes 8",
          "--probes 9");
  changes("invert", "--truncation", layer + "--log-det", "--truncation 1e-3",
          "--truncation 1e-2");
  const std::string trained = "{trained} --length 6 --text {book} ";
  changes("invert", "--activations", trained, "--activations f64",
          "--activations f32");
  changes("invert", "--given-error", trained, "--given-error 1e-9",
          "--given-error 1e-8");
  strict("invert");
  output("invert");
  saved("invert", "--save-output");
  saved("invert", "--save-input");

  // ---- certify
  const std::string book = "{trained} --text {book} ",
                    short_book = book + "--positions 2 ";
  changes("certify", "--text", "{trained} --positions 2", "--text {book}",
          "--text {other book}");
  changes("certify", "--split", short_book, "--split all", "--split test");
  changes("certify", "--positions", book, "--positions 2", "--positions 3");
  changes("certify", "--context", short_book, "--context 2", "--context 3");
  changes("certify", "--targets", short_book, "--targets 1", "--targets 2");
  changes("certify", "--restarts", short_book, "--restarts 0", "--restarts 1");
  changes("certify", "--iterations", short_book, "--iterations 2",
          "--iterations 3");
  changes("certify", "--seed", short_book, "--seed 0", "--seed 1");
  same("certify", "--radii", "radii at which answers are counted", short_book,
       "--radii 0.1", "--radii 0.2");
  same("certify", "--threads", "each position is done by one thread",
       short_book, "--threads 1", "--threads 2");
  output("certify");
  planned("certify");

  // ---- reproduce
  changes("reproduce", "--model", "layer-norm", "--model {model}",
          "--model {other model}");
  changes("reproduce", "--text", "kim-stability --steps 1", "--text {book}",
          "--text {other book}");
  changes("reproduce", "--full", "dot-product-unbounded", "", "--full");
  changes("reproduce", "--steps", "kim-stability --text {book}", "--steps 1",
          "--steps 2");
  changes("reproduce", "--seed", "dot-product-unbounded", "--seed 0",
          "--seed 1");
  same("reproduce", "--runs",
       "shows other models, which have their checkpoints in their keys");
  same("reproduce", "--threads", "work is cut into the same pieces",
       "castin-meanfield", "--threads 1", "--threads 2");
  output("reproduce");

  // ---- train: a run that goes on must have been told the same
  const std::string learn = "{book} ";
  refused("train", "--model", learn, "--model dot", "--model l2");
  refused("train", "--layers", learn, "--layers 1", "--layers 2");
  refused("train", "--width", learn, "--width 8", "--width 16");
  refused("train", "--heads", learn, "--heads 2", "--heads 1");
  refused("train", "--context", learn, "--context 8", "--context 9");
  refused("train", "--mlp-width", learn, "--mlp-width 8", "--mlp-width 16");
  refused("train", "--norm", learn, "--norm post", "--norm pre");
  refused("train", "--invertible", learn + "--model contractive-l2 --norm none",
          "", "--invertible");
  refused("train", "--contraction", learn + "--invertible", "--contraction 0.9",
          "--contraction 0.8");
  refused("train", "--divide", learn + "--model contractive-l2",
          "--divide layer", "--divide coordinate");
  refused("train", "--quiet-gain",
          learn +
              "--model contractive-l2 --divide coordinate "
              "--positions relative",
          "--quiet-gain 2", "--quiet-gain 3");
  refused("train", "--activation", learn, "--activation gelu",
          "--activation relu");
  refused("train", "--position-heads", learn, "--position-heads 0",
          "--position-heads 1");
  refused("train", "--heads-apart", learn, "", "--heads-apart");
  refused("train", "--positions", learn, "--positions rotary",
          "--positions none");
  refused("train", "--residual", learn + "--norm none", "--residual add",
          "--residual none");
  refused("train", "--residual-share", learn + "--norm none --residual convex",
          "--residual-share 0.5", "--residual-share 0.25");
  refused("train", "--head-bias", learn, "", "--head-bias");
  refused("train", "--optimizer", learn, "--optimizer adamw",
          "--optimizer muon");
  refused("train", "--muon-lr", learn + "--optimizer muon", "--muon-lr 0.02",
          "--muon-lr 0.03");
  refused("train", "--batch", learn, "--batch 2", "--batch 3");
  refused("train", "--lr", learn, "--lr 0.001", "--lr 0.002");
  refused("train", "--warmup", learn, "--warmup 1", "--warmup 2");
  refused("train", "--schedule", learn, "--schedule inverse-sqrt",
          "--schedule fixed");
  refused("train", "--weight-decay", learn, "--weight-decay 0.01",
          "--weight-decay 0.02");
  refused("train", "--dropout", learn, "--dropout 0", "--dropout 0.1");
  refused("train", "--clip", learn, "--clip 1", "--clip 2");
  refused("train", "--eval-every", learn, "--eval-every 2", "--eval-every 1");
  refused("train", "--measure", learn, "--measure 4", "--measure 6");
  refused("train", "--seed", learn, "--seed 0", "--seed 1");
  refused("train", "--precision", learn, "--precision high",
          "--precision bf16");
  const std::string limited = learn + "--model l2 --norm none ";
  refused("train", "--max-lipschitz", limited, "--max-lipschitz 4",
          "--max-lipschitz 5");
  const std::string ruled =
      learn +
      "--norm none --positions none --singular-values soft "
      "--longest-token 4 --max-lipschitz 4 ";
  refused("train", "--promise", ruled, "--promise 2", "--promise token");
  refused("train", "--score-limit", ruled, "--score-limit 1",
          "--score-limit 2");
  refused("train", "--matrix-limits", ruled, "--matrix-limits one",
          "--matrix-limits newhouse25");
  refused("train", "--zero-outputs", learn, "", "--zero-outputs");
  refused("train", "--longest-token", learn + "--positions none",
          "--longest-token 4", "--longest-token 5");
  refused("train", "--singular-values", learn, "--singular-values soft",
          "--singular-values cap");
  refused("train", "--spectral-cap", learn, "--spectral-cap 1",
          "--spectral-cap 2");
  refused("train", "--spectral-norm", learn, "", "--spectral-norm");
  same("train", "--steps", "a run may be told more steps and goes on to them");
  same("train", "--threads", "the weights do not depend on it");
  same("train", "--cost", "trains another model in a folder of its own");
  output("train");

  // ---- commands that keep no records
  changes("eval", "--text", "{trained}", "--text {book}",
          "--text {other book}");
  changes("eval", "--split", book, "--split all", "--split test");
  same("eval", "--windows", "needs a longer text; see eval_test.cpp");
  changes("eval", "--weights", book, "--weights best", "--weights last");
  same("eval", "--ngrams", "other numbers beside the model's, each with its n");
  same("eval", "--threads", "windows are summed in their order");
  same("eval", "--json", "how the number is shown");
  same("eval", "--help", "asks nothing");
  for (const char* option :
       {"--prompt", "--length", "--temperature", "--seed", "--threads"})
    same("sample", option, "prints a text and keeps nothing");
  same("sample", "--help", "asks nothing");
  for (const char* command : {"report", "compare"})
    for (const char* option : {"--out", "--force", "--quiet", "--help"})
      same(command, option, "shows records and makes none");
  same("plan", "--help", "asks what its command asks, and answers nothing");
  for (const char* option : {"--plan", "--out", "--missing", "--tolerance",
                             "--strict", "--quiet", "--force", "--help"})
    same("merge", option, "puts records together and makes none");
  for (const char* option : {"--threads", "--json", "--help"})
    same("doctor", option, "looks at the machine and makes no record");
  return rows;
}

}  // namespace lipscope::test
