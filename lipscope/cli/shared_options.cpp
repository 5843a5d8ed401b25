#include "lipscope/cli/shared_options.h"

#include <fmt/format.h>

#include "lipscope/attention/kinds.h"
#include "lipscope/cli/choice.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/core/number_text.h"

namespace lipscope::cli {
namespace {

// the names of all kinds, with what there is to say of them
std::vector<std::string> kinds_with_notes() {
  std::vector<std::string> words;
  for (const Kind kind : all_kinds) {
    words.push_back(name_of(kind));
    const std::string_view note = kind_of(kind).note;
    if (!note.empty()) words.back() += fmt::format(" ({})", note);
  }
  return words;
}

}  // namespace

void declare_weights(CLI::App& app, audit::SourceOptions& o) {
  const char* group = "Weights (one of the three)";
  auto* model = app.add_option("MODEL_DIR", o.model,
                               "a Hugging Face folder: GPT-2, BERT or Llama; "
                               "or a folder made by lipscope train")
                    ->group(group);
  auto* weights = app.add_option("--weights", o.weights,
                                 "one layer from FILE.safetensors: tensors q, "
                                 "k, v, o [in, out], optional *_bias, x [n, d]")
                      ->type_name("FILE")
                      ->group(group);
  auto* random =
      app.add_option("--random", o.random,
                     "gpt2 or bert: the model with its usual random "
                     "initialisation; or one layer with normal weights, "
                     "d=768,heads=12 and, if wanted, width=K (of a head) and "
                     "scale=0.02")
          ->type_name("RECIPE")
          ->group(group);
  weights->excludes(random);
  model->excludes(weights)->excludes(random);
  app.add_option("--num-heads", o.num_heads, "heads of the layer in --weights")
      ->transform(whole_number(1, Index{1} << 20))
      ->group(group);
  auto* kind =
      app.add_option(
             "--kind", o.kind,
             "kind of attention: auto (the model's own; dot for a layer), " +
                 audit::listed(kinds_with_notes()) +
                 "; in a model it replaces the model's own attention, at the "
                 "same inputs")
          ->capture_default_str()
          ->group(group);
  offer(kind, audit::kind_words());

  app.add_option("--tau", o.cosine.tau, "cosine: scale of the scores")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--nu", o.cosine.nu, "cosine: scale of the values")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--epsilon", o.cosine.epsilon,
                 "cosine: added to squared lengths")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
}

void declare_token_set(CLI::App& app, audit::SourceOptions& o) {
  const char* group = "Tokens";
  app.add_option("--length,--lengths", o.lengths,
                 "numbers of tokens: 128, 8,32,128 or 2:100:2 (100 left out) "
                 "[default: 128]")
      ->type_name("N")
      ->group(group);
  add_parsed(app, "--radius", o.radius, audit::parse_radius,
             "largest norm of a token: a number; ln: what the norm layer "
             "before the attention allows [default for a model]; "
             "everywhere: no limit [default for a layer]")
      ->type_name("R")
      ->group(group);
}

void declare_source(CLI::App& app, audit::SourceOptions& o) {
  declare_weights(app, o);
  const char* group = "Tokens (default: x of --weights)";
  auto* text = app.add_option("--text", o.text,
                              "a text for the model's own tokenizer; the "
                              "inputs are windows of it, one after the other")
                   ->type_name("FILE")
                   ->group(group);
  auto* ids = app.add_option("--ids", o.ids,
                             "token ids in place of a text, separated by "
                             "white space")
                  ->type_name("FILE")
                  ->group(group);
  auto* input =
      app.add_option("--input", o.input,
                     "the tokens, [n, d], from X.npy; of a model, the input of "
                     "the attention module itself")
          ->type_name("FILE")
          ->group(group);
  auto* embedded =
      app.add_option("--embedded", o.embedded,
                     "the input of layer 0 of a model, [n, d], from X.npy: "
                     "embedded tokens or patches, which go through the model")
          ->type_name("FILE")
          ->group(group);
  auto* lengths =
      app.add_option("--length,--lengths", o.lengths,
                     "numbers of tokens: 128, 8,32,128 or 2:100:2 (100 left "
                     "out) [default for a text: 2:100:2]; without a text the "
                     "tokens are Gaussian")
          ->type_name("N")
          ->group(group);
  input->excludes(lengths)->excludes(text)->excludes(ids);
  embedded->excludes(lengths)->excludes(text)->excludes(ids)->excludes(input);
  text->excludes(ids);
  app.add_option(
         "--samples", o.samples,
         "sequences of each length [default: 10 for a text, otherwise 1]")
      ->transform(whole_number(1, Index{1} << 30))
      ->group(group);
  app.add_option("--offset", o.offset, "tokens of the text to skip")
      ->transform(whole_number(0, Index{1} << 40))
      ->capture_default_str()
      ->group(group);
  add_parsed(app, "--radius", o.radius, audit::parse_radius,
             "make Gaussian tokens, the longest of this norm; ln: the "
             "largest norm that the layer norm allows")
      ->type_name("R")
      ->group(group);
  auto* dtype =
      add_parsed(app, "--dtype", o.dtype, parse_number_format,
                 "f32 or f64: precision of the pass that computes a model's "
                 "inputs; results are computed in f64 in both cases")
          ->default_str(name_of(o.dtype))
          ->group(group);
  only(dtype, {"f32", "f64"});
}

void declare_selection(CLI::App& app, audit::SelectionOptions& o) {
  const char* group = "What is measured";
  auto* map =
      app.add_option(
             "--map", o.map,
             "attn: from the input of the attention module to the output of "
             "W_O; core: to the concatenated heads, before W_O; for a model "
             "also residual: a sub-layer with its residual and norm; block: a "
             "whole layer; model: all layers")
          ->capture_default_str()
          ->group(group);
  offer(map, {"attn", "core", "residual", "block", "model"});
  auto* layers = app.add_option("--layers", o.layers,
                                "layers of a model: all, or a list: 0,6,11")
                     ->capture_default_str()
                     ->group(group);
  offer(layers, {"all"});
  auto* heads =
      app.add_option(
             "--heads", o.heads,
             "all: all together; each: every head alone; or a list: 0,3,5")
          ->capture_default_str()
          ->group(group);
  offer(heads, {"all", "each"});
  auto* mask =
      app.add_option(
             "--mask", o.mask,
             "none, causal, or auto (each layer's own of a model, windows "
             "included; none for a layer by itself)")
          ->capture_default_str()
          ->group(group);
  offer(mask, {"auto", "none", "causal"});
  app.add_option("--window", o.window,
                 "tokens see those less than this away, |i - j| < W, beside "
                 "the mask")
      ->transform(whole_number(1, Index{1} << 40))
      ->type_name("W")
      ->group(group);
  app.add_option("--padding", o.padding,
                 "so many tokens at the beginning and at the end are padding: "
                 "no token sees them")
      ->type_name("BEFORE:AFTER")
      ->group(group);
  if (!o.norms) return;
  auto* norm = add_parsed(app, "--norm", o.norm, parse_norm,
                          "2: 2-norm of the whole sequence; inf: its "
                          "largest entry; token: its longest token")
                   ->default_str(name_of(o.norm))
                   ->group(group);
  offer(norm, {"2", "inf", "token"});
}

void declare_text_piece(CLI::App& app, audit::TextPieceOptions& o) {
  app.add_option("--text", o.text, "a text in UTF-8")
      ->required()
      ->type_name("FILE");
  auto* split =
      app.add_option("--split", o.piece,
                     "the whole text, or one of the parts that train makes; "
                     "last-tenth: valid and test together")
          ->capture_default_str();
  only(split, {"all", "train", "valid", "test", "last-tenth"});
}

void declare_solver(CLI::App& app, MeasureOptions& o,
                    const std::string& group) {
  app.add_option("--tolerance", o.tolerance,
                 "done when the relative residual is below this")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-steps", o.max_steps,
                 "largest number of Golub-Kahan steps")
      ->transform(whole_number(1, 100000))
      ->capture_default_str()
      ->group(group);
  auto* enclose =
      app.add_option_function<std::string>(
             "--enclose",
             [&o](const std::string& factor) {
               o.from_above = factor != "none";
               o.enclose = o.from_above ? *finite_number_in(factor) : 0.0;
             },
             "go on until 'upper (whp)' is within this factor of 'lower', e.g. "
             "1.05; none: no 'upper (whp)' and none of its work, a fifth of a "
             "measurement")
          ->transform(number_or("none", number_between(1.0 + 1e-6, 1e6)))
          ->group(group);
  offer(enclose, {"none"})->type_name("FACTOR");
  app.add_option("--delta", o.delta,
                 "probability with which 'upper (whp)' may be wrong")
      ->transform(number_between(1e-300, 0.5))
      ->capture_default_str()
      ->group(group);
}

void declare_effort(CLI::App& app, bool& strict, std::uint64_t& seed,
                    int& threads, const std::string& group) {
  app.add_flag("--strict", strict, "exit code 3 if anything did not converge")
      ->group(group);
  app.add_option("--seed", seed,
                 "seed of random weights, tokens and starting vectors")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
}

}  // namespace lipscope::cli
