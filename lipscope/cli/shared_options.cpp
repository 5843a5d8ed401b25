#include "lipscope/cli/shared_options.h"

#include "lipscope/cli/choice.h"
#include "lipscope/cli/numbers.h"

namespace lipscope::cli {

void declare_weights(CLI::App& app, audit::SourceOptions& o) {
  const char* group = "Weights (one of the three)";
  auto* model =
      app.add_option("MODEL_DIR", o.model,
                     "a Hugging Face folder: GPT-2, BERT or Llama; or "
                     "what lipscope train made")
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
             "how tokens are compared: auto (the model's own; dot of a "
             "layer), dot, l2 (tied, Lipschitz), l2-untied, cosine or "
             "sigmoid; on a model, put in place of its own attention, at "
             "the inputs that the model itself makes")
          ->capture_default_str()
          ->group(group);
  offer(kind, {"auto", "dot", "l2", "l2-untied", "cosine", "sigmoid"});

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
                 "how many: 128, 8,32,128 or 2:100:2 (100 left out) [128]")
      ->type_name("N")
      ->group(group);
  app.add_option("--radius", o.radius,
                 "how long each may be: a number; ln: what the norm layer "
                 "ahead of the attention lets through [of a model: ln]; "
                 "everywhere [of a layer]")
      ->type_name("R")
      ->group(group);
}

void declare_source(CLI::App& app, audit::SourceOptions& o) {
  declare_weights(app, o);
  const char* group = "Tokens (x of --weights, if nothing else is said)";
  auto* text = app.add_option("--text", o.text,
                              "a text, for the model's own tokenizer; windows "
                              "of it, one after the other, are the inputs")
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
  auto* lengths =
      app.add_option("--length,--lengths", o.lengths,
                     "of these lengths: 128, 8,32,128 or 2:100:2 (100 left "
                     "out). Of a text, 2:100:2 if nothing is said; without a "
                     "text the tokens are Gaussian")
          ->type_name("N")
          ->group(group);
  input->excludes(lengths)->excludes(text)->excludes(ids);
  text->excludes(ids);
  app.add_option("--samples", o.samples,
                 "sequences of each length [10 of a text, otherwise 1]")
      ->transform(whole_number(1, Index{1} << 30))
      ->group(group);
  app.add_option("--offset", o.offset, "tokens of the text to skip")
      ->transform(whole_number(0, Index{1} << 40))
      ->capture_default_str()
      ->group(group);
  app.add_option("--radius", o.radius,
                 "make Gaussian tokens, scaled so that the longest has this "
                 "norm; ln: the most a layer norm lets through")
      ->type_name("R")
      ->group(group);
  auto* dtype =
      app.add_option(
             "--dtype", o.dtype,
             "f32 or f64: of the pass that makes a model's inputs; what is "
             "measured there is always testified in f64")
          ->capture_default_str()
          ->group(group);
  only(dtype, {"f32", "f64"});
}

void declare_selection(CLI::App& app, audit::SelectionOptions& o) {
  const char* group = "What is measured";
  auto* map =
      app.add_option(
             "--map", o.map,
             "attn: input of the attention module to the output of W_O; "
             "core: the same to the heads end to end, before W_O; of a "
             "model also residual: a sub-layer with its residual and norm; "
             "block: a whole layer; model: all layers")
          ->capture_default_str()
          ->group(group);
  offer(map, {"attn", "core", "residual", "block", "model"});
  auto* layers =
      app.add_option("--layers", o.layers, "of a model: all, or these: 0,6,11")
          ->capture_default_str()
          ->group(group);
  offer(layers, {"all"});
  auto* heads = app.add_option("--heads", o.heads,
                               "all together, each by itself, or these: 0,3,5")
                    ->capture_default_str()
                    ->group(group);
  offer(heads, {"all", "each"});
  auto* mask =
      app.add_option(
             "--mask", o.mask,
             "none, causal, or auto (the model's own; none for a layer)")
          ->capture_default_str()
          ->group(group);
  offer(mask, {"auto", "none", "causal"});
  if (!o.norms) return;
  auto* norm =
      app.add_option(
             "--norm", o.norm,
             "2: of the whole sequence; inf: of its largest entry; token: "
             "of its longest token")
          ->capture_default_str()
          ->group(group);
  offer(norm, {"2", "inf", "token"});
}

void declare_text_piece(CLI::App& app, audit::TextPieceOptions& o) {
  app.add_option("--text", o.text, "a text in UTF-8")
      ->required()
      ->type_name("FILE");
  auto* split = app.add_option("--split", o.piece,
                               "all of it, or the piece that train makes of it")
                    ->capture_default_str();
  only(split, {"all", "train", "valid", "test"});
}

void declare_solver(CLI::App& app, MeasureOptions& o,
                    const std::string& group) {
  app.add_option("--tolerance", o.tolerance,
                 "done when the relative residual is below this")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-steps", o.max_steps,
                 "Golub-Kahan steps before giving up")
      ->transform(whole_number(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--enclose", o.enclose,
                 "go on until 'upper (whp)' is within this factor of 'lower', "
                 "e.g. 1.05")
      ->transform(number_between(1.0 + 1e-6, 1e6))
      ->group(group);
  app.add_option("--delta", o.delta, "chance with which 'upper (whp)' may fail")
      ->transform(number_between(1e-300, 0.5))
      ->capture_default_str()
      ->group(group);
}

void declare_effort(CLI::App& app, bool& strict, std::uint64_t& seed,
                    int& threads, const std::string& group) {
  app.add_flag("--strict", strict, "exit code 3 if anything did not converge")
      ->group(group);
  app.add_option("--seed", seed,
                 "of random weights, tokens and starting vectors")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", threads, "0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
}

}  // namespace lipscope::cli
