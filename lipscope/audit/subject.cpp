#include "lipscope/audit/subject.h"

#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/io/sha256.h"
#include "lipscope/model/layer.h"
#include "lipscope/record/fingerprint.h"

namespace lipscope::audit {
namespace {

// GPT-2 draws every weight from a normal of deviation 0.02 and starts biases
// at zero, which is to have none
LoneLayer random_layer(const SourceOptions& o) {
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
  if (width < 0)
    throw InputError(fmt::format("--random {}: width must lie between 1 and {}",
                                 o.random, most));
  // no normal number that is drawn here is as large
  if (!std::isfinite(100 * scale))
    throw InputError(
        fmt::format("--random {}: weights of scale {} would not be finite",
                    o.random, scale));
  const Index columns = heads * (width == 0 ? d / heads : width);
  // four matrices, as they are made and as the map has them in f64 and f32
  require_memory(
      20.0 * 4 * static_cast<double>(d) * static_cast<double>(columns),
      fmt::format("--random {}: a layer with four matrices of [{}, {}]",
                  o.random, d, columns));

  const Rng rng = Rng(o.seed).split(weight_stream);
  LoneLayer layer;
  const Kind kind = parse_kind(o.kind);
  AttentionWeights& w = layer.weights;
  w.heads = heads;
  w.query = scale * gaussian(d, columns, rng.split(0));
  if (!kind_of(kind).tied) w.key = scale * gaussian(d, columns, rng.split(1));
  w.value = scale * gaussian(d, columns, rng.split(2));
  w.output = scale * gaussian(columns, d, rng.split(3));
  layer.norm = NormWeights{.gain = Vector::Ones(d), .bias = Vector::Zero(d)};
  return layer;
}

LoneLayer stored_layer(const SourceOptions& o) {
  const SafetensorsFile file(o.weights);
  LoneLayer layer;
  const Kind kind = parse_kind(o.kind);

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
  if (!kind_of(kind).tied) {
    w.key = file.matrix("k");
    w.key_bias = vector("k_bias");
  }
  w.output = matrix("o");
  w.output_bias = vector("o_bias");
  layer.x = matrix("x");
  layer.mass = vector("mass");
  layer.position = vector("position");
  if (file.contains("ln_gain"))
    layer.norm =
        NormWeights{.gain = vector("ln_gain"), .bias = vector("ln_bias")};

  try {
    require_sound(w, kind);
    if (layer.norm)
      for (const auto& [name, v] : {std::pair("ln_gain", &layer.norm->gain),
                                    {"ln_bias", &layer.norm->bias}})
        require(v->size() == 0 || v->size() == w.features(),
                "{}: {} numbers for {} features", name, v->size(),
                w.features());
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("{}: tensor {}", o.weights, wrong.what()));
  }
  return layer;
}

// of all weights, each by its content; what is absent counts as empty
std::string content_of(const LoneLayer& layer) {
  const AttentionWeights& w = layer.weights;
  std::vector<std::string> parts;
  for (const Matrix* m : {&w.query, &w.key, &w.value, &w.output})
    parts.push_back(fingerprint(*m));
  for (const Vector* v :
       {&w.query_bias, &w.key_bias, &w.value_bias, &w.output_bias})
    parts.push_back(fingerprint(Matrix(*v)));
  if (layer.norm)
    for (const Vector* v : {&layer.norm->gain, &layer.norm->bias})
      parts.push_back(fingerprint(Matrix(*v)));
  return fingerprint(parts);
}

Model random_architecture(const SourceOptions& o) {
  return random_model(usual_config(o.random == "gpt2" ? Architecture::gpt2
                                                      : Architecture::bert),
                      o.seed);
}

// in megabytes, where there are enough of them to take a while
WeightFiles::BytesRead told_to(const Watch& watch) {
  return [&watch](std::uint64_t read, std::uint64_t all) {
    constexpr std::uint64_t megabyte = 1'000'000, many = 250 * megabyte;
    if (all < many || !watch.working) return;
    watch.working({.done = static_cast<Index>(read / megabyte),
                   .total = static_cast<Index>(all / megabyte),
                   .doing = "MB of the weights hashed",
                   .more = true});
  };
}

}  // namespace

Index Subject::layers() const { return model ? model->config.layers : 1; }

Index Subject::heads() const {
  return model ? model->config.heads : layer->weights.heads;
}

Index Subject::features() const {
  return model ? model->config.width : layer->weights.features();
}

Mask Subject::mask(Index number) const {
  return model ? model->config.mask(number) : Mask::none;
}

double numbers_of_a_layer(const ModelConfig& c) {
  const double d = static_cast<double>(c.width);
  return 4.0 * d * d + 3.0 * d * static_cast<double>(c.mlp_width);
}

Subject load_subject(const SourceOptions& o, const Watch& watch) {
  if (!o.model.empty() + !o.weights.empty() + !o.random.empty() +
          (o.layer != nullptr) + (o.model_in_memory != nullptr) !=
      1)
    throw InputError(
        "where are the weights? Give MODEL_DIR, --weights FILE.safetensors "
        "or --random gpt2|bert|d=768,heads=12");
  Subject subject;
  if (o.layer) {
    require_sound(o.layer->weights, parse_kind(o.kind));
    subject.layer = o.layer;
    subject.name = "in memory";
    subject.sha256 = content_of(*o.layer);
  } else if (o.model_in_memory) {
    subject.model = load_model(*o.model_in_memory);
    subject.name = "in memory";
    subject.sha256 = subject.model->parameters.sha256();
  } else if (!o.model.empty()) {
    subject.model = load_model(o.model);
    subject.name = o.model;
    subject.sha256 = subject.model->parameters.sha256(told_to(watch));
  } else if (o.random == "gpt2" || o.random == "bert") {
    subject.model = random_architecture(o);
    subject.name = "random " + o.random;
  } else if (!o.random.empty()) {
    subject.layer = std::make_shared<const LoneLayer>(random_layer(o));
    subject.name = "random " + o.random;
  } else {
    if (o.num_heads < 1)
      throw InputError(fmt::format(
          "{}: how many heads? The file does not say; give --num-heads",
          o.weights));
    subject.layer = std::make_shared<const LoneLayer>(stored_layer(o));
    subject.name = o.weights;
    subject.sha256 = sha256_file(o.weights);
  }
  if (subject.model) {
    const ModelConfig& c = subject.model->config;
    subject.keeps_layers =
        sizeof(double) * numbers_of_a_layer(c) * static_cast<double>(c.layers) <
        o.layer_memory;
  }
  return subject;
}

std::optional<NormWeights> input_norm(const Subject& subject,
                                      std::optional<Index> layer) {
  if (subject.layer) return subject.layer->norm;
  return load_input_norm(*subject.model, *layer);
}

}  // namespace lipscope::audit
