#include "lipscope/cli/source.h"

#include <optional>
#include <type_traits>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"

namespace lipscope::cli {

template <class Number>
Number parse_number(const std::string& text, const std::string& where) {
  std::optional<Number> value;
  if constexpr (std::is_integral_v<Number>)
    value = whole_number_in(text);
  else
    value = finite_number_in(text);
  if (!value)
    throw InputError(fmt::format(
        "{}: '{}' is not {}", where, text,
        std::is_integral_v<Number> ? "a whole number" : "a finite number"));
  return *value;
}

template Index parse_number(const std::string&, const std::string&);
template double parse_number(const std::string&, const std::string&);

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void declare_weights(CLI::App& app, SourceOptions& o) {
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

void declare_token_set(CLI::App& app, SourceOptions& o) {
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

void declare_source(CLI::App& app, SourceOptions& o) {
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

nlohmann::ordered_json told_radius(const std::string& radius) {
  if (radius == "ln" || radius == "everywhere") return radius;
  return parse_number<double>(radius, "--radius");
}

Kind parse_kind(const std::string& name) {
  if (name == "auto") return Kind::dot;
  for (const Kind kind : all_kinds)
    if (name == name_of(kind)) return kind;
  throw InputError(fmt::format(
      "--kind {}: expected auto, dot, l2, l2-untied, cosine or sigmoid{}", name,
      did_you_mean(name,
                   {"auto", "dot", "l2", "l2-untied", "cosine", "sigmoid"})));
}

std::vector<Index> parse_lengths(const std::string& text) {
  const std::string where = "--lengths " + text;
  std::vector<Index> lengths;
  const std::vector<std::string> range = split(text, ':');
  constexpr Index most = Index{1} << 24;
  if (range.size() == 2 || range.size() == 3) {
    const Index begin = parse_number<Index>(range[0], where);
    const Index end = parse_number<Index>(range[1], where);
    const Index step =
        range.size() == 3 ? parse_number<Index>(range[2], where) : 1;
    if (step < 1 || begin < 1 || end > most)
      throw InputError(where + ": a:b:s counts up from a >= 1 by s >= 1");
    constexpr Index most_lengths = 100'000;
    if (const Index count = (end - begin + step - 1) / step;
        count > most_lengths)
      throw InputError(fmt::format("{}: {} lengths; at most {} are possible",
                                   where, count, most_lengths));
    for (Index n = begin; n < end; n += step) lengths.push_back(n);
  } else if (range.size() == 1) {
    for (const std::string& part : split(text, ','))
      lengths.push_back(parse_number<Index>(part, where));
  }
  if (lengths.empty())
    throw InputError(where + ": no lengths; expected a:b:s or a,b,c");
  for (const Index n : lengths)
    if (n < 1 || n > most)
      throw InputError(fmt::format(
          "{}: a sequence of {} tokens; 1 to {} are possible", where, n, most));
  return lengths;
}

}  // namespace lipscope::cli
