#include "lipscope/cli/source.h"

#include <charconv>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/io/sha256.h"

namespace lipscope::cli {
namespace {

// what the seed is split into
enum Stream : std::uint64_t { weight_stream = 0, token_stream = 1 };

template <class Number>
Number parse_number(const std::string& text, const std::string& where) {
  Number value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw InputError(fmt::format("{}: '{}' is not a number", where, text));
  return value;
}

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

// GPT-2 draws every weight from a normal of deviation 0.02 and starts biases
// at zero, which is to have none
Layer random_layer(const SourceOptions& o) {
  Index d = 0, heads = 1, width = 0;
  double scale = 0.02;
  for (const std::string& part : split(o.random, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "" : part.substr(equals + 1);
    const std::string where = "--random " + key;
    if (key == "d")
      d = parse_number<Index>(value, where);
    else if (key == "heads")
      heads = parse_number<Index>(value, where);
    else if (key == "width")
      width = parse_number<Index>(value, where);
    else if (key == "scale")
      scale = parse_number<double>(value, where);
    else
      throw InputError(
          fmt::format("--random {}: '{}' is none of d, heads, width, scale",
                      o.random, key));
  }
  constexpr Index most = 65536;
  if (d < 1 || heads < 1 || d > most || heads > most || width > most)
    throw InputError(fmt::format(
        "--random {}: d and heads must lie between 1 and {}", o.random, most));
  if (width == 0 && d % heads != 0)
    throw InputError(fmt::format(
        "--random {}: d={} does not divide into heads={}; give width=",
        o.random, d, heads));
  if (width < 0 || !std::isfinite(scale))
    throw InputError(
        fmt::format("--random {}: width={}, scale={}", o.random, width, scale));
  const Index columns = heads * (width == 0 ? d / heads : width);

  const Rng rng = Rng(o.seed).split(weight_stream);
  Layer layer;
  layer.kind = parse_kind(o.kind);
  layer.name = "random " + o.random;
  layer.cosine = o.cosine;
  AttentionWeights& w = layer.weights;
  w.heads = heads;
  w.query = scale * gaussian(d, columns, rng.split(0));
  if (layer.kind != Kind::l2)
    w.key = scale * gaussian(d, columns, rng.split(1));
  w.value = scale * gaussian(d, columns, rng.split(2));
  w.output = scale * gaussian(columns, d, rng.split(3));
  layer.norm_gain = Vector::Ones(d);
  layer.norm_bias = Vector::Zero(d);
  return layer;
}

Layer stored_layer(const SourceOptions& o) {
  const SafetensorsFile file(o.weights);
  Layer layer;
  layer.kind = parse_kind(o.kind);
  layer.name = o.weights;
  layer.cosine = o.cosine;
  layer.sha256 = sha256_file(o.weights);

  const auto matrix = [&](const char* name) {
    return file.contains(name) ? file.matrix(name) : Matrix();
  };
  const auto vector = [&](const char* name) {
    if (!file.contains(name)) return Vector();
    if (file.shape(name).size() != 1)
      throw InputError(
          fmt::format("{}: tensor \"{}\" has {} axes, expected one", o.weights,
                      name, file.shape(name).size()));
    return Vector(flatten(file.matrix(name)));
  };
  const auto two_axes = [&](const char* name) {
    if (file.contains(name) && file.shape(name).size() != 2)
      throw InputError(
          fmt::format("{}: tensor \"{}\" has {} axes, expected two", o.weights,
                      name, file.shape(name).size()));
  };
  for (const char* name : {"q", "k", "v", "o", "x"}) two_axes(name);

  AttentionWeights& w = layer.weights;
  w.heads = o.num_heads;
  w.query = file.matrix("q");
  w.value = file.matrix("v");
  w.query_bias = vector("q_bias");
  w.value_bias = vector("v_bias");
  if (layer.kind != Kind::l2) {
    w.key = file.matrix("k");
    w.key_bias = vector("k_bias");
  }
  w.output = matrix("o");
  w.output_bias = vector("o_bias");
  layer.x = matrix("x");
  layer.norm_gain = vector("ln_gain");
  layer.norm_bias = vector("ln_bias");

  try {
    require_sound(w, layer.kind);
    for (const auto& [name, v] : {std::pair("ln_gain", &layer.norm_gain),
                                  {"ln_bias", &layer.norm_bias}})
      require(v->size() == 0 || v->size() == w.features(),
              "{}: {} numbers for {} features", name, v->size(), w.features());
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("{}: tensor {}", o.weights, wrong.what()));
  }
  return layer;
}

// after a layer norm |x| ≤ √D max|γ| + |β|
double norm_radius(const Layer& layer) {
  if (layer.norm_gain.size() == 0)
    throw InputError(fmt::format(
        "--radius ln: {} has no ln_gain, so no layer norm bounds its tokens",
        layer.name));
  const double bias = layer.norm_bias.size() > 0 ? layer.norm_bias.norm() : 0.0;
  return std::sqrt(static_cast<double>(layer.norm_gain.size())) *
             layer.norm_gain.cwiseAbs().maxCoeff() +
         bias;
}

}  // namespace

void declare_source(CLI::App& app, SourceOptions& o) {
  const char* group = "Weights (one of the two)";
  auto* weights = app.add_option("--weights", o.weights,
                                 "one layer from FILE.safetensors: tensors q, "
                                 "k, v, o [in, out], optional *_bias, x [n, d]")
                      ->type_name("FILE")
                      ->group(group);
  auto* random =
      app.add_option("--random", o.random,
                     "a layer with normal weights: d=768,heads=12 and, if "
                     "wanted, width=K (of a head) and scale=0.02")
          ->type_name("RECIPE")
          ->group(group);
  weights->excludes(random);
  app.add_option("--num-heads", o.num_heads, "heads of the layer in --weights")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--kind", o.kind,
                 "how tokens are compared: dot, l2 (tied, Lipschitz), "
                 "l2-untied, cosine or sigmoid")
      ->capture_default_str()
      ->group(group);

  app.add_option("--tau", o.cosine.tau, "cosine: scale of the scores")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--nu", o.cosine.nu, "cosine: scale of the values")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--epsilon", o.cosine.epsilon,
                 "cosine: added to squared lengths")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);

  group = "Tokens (x of --weights, if nothing else is said)";
  auto* input =
      app.add_option("--input", o.input, "the tokens, [n, d], from X.npy")
          ->type_name("FILE")
          ->group(group);
  auto* lengths =
      app.add_option("--length,--lengths", o.lengths,
                     "make Gaussian tokens of these lengths: 128, 8,32,128 or "
                     "2:100:2 (100 left out)")
          ->type_name("N")
          ->group(group);
  input->excludes(lengths);
  app.add_option("--samples", o.samples, "sequences made of each length")
      ->check(CLI::Range(Index{1}, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  app.add_option("--radius", o.radius,
                 "scale the made tokens so that the longest has this norm; ln: "
                 "the most a layer norm lets through")
      ->type_name("R")
      ->group(group);
}

Kind parse_kind(const std::string& name) {
  for (const Kind kind : all_kinds)
    if (name == name_of(kind)) return kind;
  throw InputError(fmt::format(
      "--kind {}: expected dot, l2, l2-untied, cosine or sigmoid", name));
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

Layer load_layer(const SourceOptions& o) {
  if (o.weights.empty() == o.random.empty())
    throw InputError(
        "where are the weights? Give --weights FILE.safetensors "
        "or --random d=768,heads=12");
  if (!o.random.empty()) return random_layer(o);
  if (o.num_heads < 1)
    throw InputError(fmt::format(
        "{}: how many heads? The file does not say; give --num-heads",
        o.weights));
  return stored_layer(o);
}

TokenSource::TokenSource(const SourceOptions& o, const Layer& layer)
    : samples_(o.samples), features_(layer.weights.features()), seed_(o.seed) {
  if (!o.input.empty())
    given_ = read_npy(o.input);
  else if (o.lengths.empty())
    given_ = layer.x;

  if (!o.input.empty() || given_.size() > 0) {
    const std::string where =
        o.input.empty() ? layer.name + ": tensor \"x\"" : o.input;
    if (given_.rows() == 0) throw InputError(where + ": an empty sequence");
    if (given_.cols() != features_)
      throw InputError(
          fmt::format("{}: tokens have {} features, the layer reads {}", where,
                      given_.cols(), features_));
    if (!o.radius.empty())
      throw InputError("--radius: the tokens are given, not made");
    return;
  }

  if (!o.lengths.empty())
    lengths_ = parse_lengths(o.lengths);
  else if (!o.random.empty())
    lengths_ = {128};
  else
    throw InputError(fmt::format(
        "{}: at which tokens? The file has no tensor \"x\"; give --input X.npy "
        "or --length N",
        o.weights));
  if (o.radius == "ln") {
    radius_ = norm_radius(layer);
  } else if (!o.radius.empty()) {
    radius_ = parse_number<double>(o.radius, "--radius");
    if (!(*radius_ > 0.0) || !std::isfinite(*radius_))
      throw InputError(
          fmt::format("--radius {}: a radius is positive", o.radius));
  }
}

Index TokenSource::size() const {
  return given_.size() > 0 ? 1 : static_cast<Index>(lengths_.size()) * samples_;
}

Tokens TokenSource::at(Index i) const {
  if (given_.size() > 0) return {given_, 0};
  const Index n = lengths_[i / samples_], sample = i % samples_;
  const Rng rng = Rng(seed_).split(token_stream).split(n).split(sample);
  Matrix x = gaussian(n, features_, rng);
  if (radius_) x *= *radius_ / x.rowwise().norm().maxCoeff();
  return {std::move(x), sample};
}

}  // namespace lipscope::cli
