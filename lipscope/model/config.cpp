#include "lipscope/model/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/safetensors_header.h"
#include "lipscope/io/text_file.h"
#include "lipscope/model/config_reader.h"
#include "lipscope/model/family.h"

namespace lipscope {
namespace {

using nlohmann::json;

Architecture architecture_of(const ConfigReader& r) {
  const std::string type = r.text("model_type", "");
  if (const auto found = architecture_named(type)) return *found;
  if (type.empty())
    throw InputError(fmt::format("{}: no model_type; {} can be read", r.where(),
                                 known_model_types()));
  const std::optional<std::string> why = why_left_out(type);
  throw InputError(fmt::format(
      "{}: model_type is {}{}; {} can be read", r.where(), printable(type),
      why ? ": " + *why + ", which is not supported" : "",
      known_model_types()));
}

// what no family here has
void refuse_the_unsupported(const ConfigReader& r, const Family& family) {
  r.refuse_if("quantization_config", "quantisation");
  r.refuse_if("add_cross_attention", "cross-attention");
  r.refuse_if("is_encoder_decoder", "an encoder-decoder model");
  if (family.keys.window.empty() && !family.ignores_window)
    r.refuse_if("sliding_window", "a sliding window");
  for (const char* key :
       {"num_experts", "num_local_experts", "n_routed_experts"})
    r.refuse_if(key, "a mixture of experts");
  for (const char* key : {"qk_norm", "use_qk_norm", "qk_layernorm"})
    r.refuse_if(key, "q/k-norm");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    r.refuse_if(key, "a cap on scores or logits");
  r.refuse_if("use_bidirectional_attention", "attention without its mask");
  if (const json* pruned = r.find("pruned_heads"))
    if (!pruned->empty())
      r.refuse("pruned_heads", *pruned, "pruned heads are not supported");
  if (const json* types = r.find("layer_types"))
    for (const json& type : *types)
      if (type != "full_attention" &&
          (type != "sliding_attention" || !family.reads_layer_types))
        r.refuse("layer_types", type, "this attention is not supported");
  for (const Refusal& each : family.refusals)
    if (each.only)
      r.refuse_unless(each.key, *each.only, each.what);
    else
      r.refuse_if(each.key, each.what);
}

// which of the names of a setting the file has; the usual one if it has none
std::string_view key_in(const ConfigReader& r, const ConfigKeys::Keys& keys) {
  for (const char* key : keys)
    if (r.find(key) != nullptr) return key;
  return keys.front();
}

// ---- rotary positions

double number_in(const ConfigReader& r, const char* key, const json& object,
                 const char* name) {
  if (!object.contains(name))
    r.refuse(key, object, fmt::format("expected a {}", name));
  return r.positive_number(name, object.at(name));
}

// how positions are scaled, from rope_scaling or rope_parameters
void read_scaling(const ConfigReader& r, const char* key, const json& given,
                  Index positions, Rotary& rope) {
  std::string type = "default";
  for (const char* name : {"type", "rope_type"})
    if (given.contains(name)) {
      if (!given.at(name).is_string())
        r.refuse(key, given, "expected the name of a type");
      type = given.at(name).get<std::string>();
    }
  std::vector<std::string> known = {"type", "rope_type", "rope_theta",
                                    "partial_rotary_factor"};
  if (type == "linear" || type == "llama3") {
    known.push_back("factor");
    rope.factor = number_in(r, key, given, "factor");
  } else if (type != "default") {
    r.refuse(key, given,
             "rotary positions of the types default, linear and llama3 are "
             "supported");
  }
  if (type == "llama3") {
    const auto context = [&]() -> double {
      // transformers gives priority to what stands outside
      constexpr const char* name = "original_max_position_embeddings";
      if (r.find(name)) return r.positive_number(name, *r.find(name));
      if (given.contains(name)) return number_in(r, key, given, name);
      return static_cast<double>(positions);
    };
    rope.slow = {.context = context(),
                 .slow = number_in(r, key, given, "low_freq_factor"),
                 .fast = number_in(r, key, given, "high_freq_factor")};
    known.insert(known.end(), {"low_freq_factor", "high_freq_factor",
                               "original_max_position_embeddings"});
  }
  for (const auto& [name, value] : given.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      r.refuse(key, given,
               fmt::format("rotary positions of type {} with {} are not "
                           "supported",
                           type, printable(name)));
}

// Newer files have θ and the share of a head that turns in rope_parameters,
// which may be one object for layers with a window and one for those without;
// older ones have them beside the other settings.
void read_rope(const ConfigReader& r, const Family& family, ModelConfig& c) {
  const char* key = r.find("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const json* found = r.find(key);
  for (const char* either : {"rope_scaling", "rope_parameters"})
    if (const json* one = r.find(either)) {
      if (!one->is_object()) r.refuse(either, *one, "expected an object");
      if (*one != *found)
        r.refuse(either, *one,
                 "rope_scaling says something else of rotary positions");
    }
  json given = found ? *found : json::object();
  if (c.local_theta && given.contains("sliding_attention")) {
    const json& local = given.at("sliding_attention");
    Rotary plain{.theta = *c.local_theta};
    if (!local.is_object()) r.refuse(key, local, "expected an object");
    if (local.contains("rope_theta"))
      plain.theta = number_in(r, key, local, "rope_theta");
    c.local_theta = plain.theta;
    read_scaling(r, key, local, c.positions, plain);
    if (plain.factor != 1.0)
      r.refuse(key, local,
               "scaled positions within a window are not supported");
    given.erase("sliding_attention");
  }
  if (c.local_theta && std::string_view(key) == "rope_parameters" &&
      !given.empty() && !given.contains("full_attention"))
    r.refuse(key, given, "expected full_attention and sliding_attention");
  if (c.local_theta && given.contains("full_attention")) {
    json whole = given.at("full_attention");
    if (!whole.is_object()) r.refuse(key, whole, "expected an object");
    given = std::move(whole);
  }
  Rotary& rope = *c.rope;
  rope.theta = given.contains("rope_theta")
                   ? number_in(r, key, given, "rope_theta")
                   : r.positive(family.keys.rope_theta, rope.theta);
  read_scaling(r, key, given, c.positions, rope);

  double share = family.rotary_share;
  const ConfigReader::Keys beside =
      family.keys.rotary_share.empty()
          ? ConfigReader::Keys{"partial_rotary_factor"}
          : family.keys.rotary_share;
  if (given.contains("partial_rotary_factor"))
    share = number_in(r, key, given, "partial_rotary_factor");
  else
    share = r.positive(beside, share);
  rope.width = static_cast<Index>(static_cast<double>(c.head_width) * share);
  if (share == 1.0) {
    rope.width = 0;
  } else if (family.keys.rotary_share.empty() || share > 1.0 ||
             rope.width == 0) {
    throw InputError(fmt::format(
        "{}: {} is {}; heads of {} features of a {} model that are rotated "
        "in part like this are not supported",
        r.where(), beside.front(), share, c.head_width,
        family.model_types.front()));
  }
}

// ---- windows

void read_window(const ConfigReader& r, const Family& family, ModelConfig& c) {
  const ConfigKeys& k = family.keys;
  if (k.window.empty()) return;
  if (r.is_null(k.window)) c.window.reset();
  if (r.find(k.window)) c.window = r.count(k.window, 1, most_entries);
  if (!k.use_window.empty() && !r.flag(k.use_window, false)) c.window.reset();
}

}  // namespace

void read_local_layers(const ConfigReader& r, ModelConfig& c,
                       const std::function<bool(Index)>& otherwise) {
  const json* types = r.find("layer_types");
  if (types != nullptr && (!types->is_array() ||
                           types->size() != static_cast<std::size_t>(c.layers)))
    r.refuse("layer_types", *types, "expected one for each layer");
  c.local.clear();
  for (Index l = 0; l < c.layers; ++l)
    if (types != nullptr
            ? (*types)[static_cast<std::size_t>(l)] == "sliding_attention"
            : c.window && otherwise(l))
      c.local.push_back(l);
  if (!c.local.empty() && !c.window)
    r.refuse("layer_types", *types, "there is no window for these layers");
  if (c.local.empty()) c.window.reset();
}

std::string name_of(Architecture architecture) {
  return family_of(architecture).model_types.front();
}

bool ModelConfig::is_local(Index layer) const {
  return std::find(local.begin(), local.end(), layer) != local.end();
}

Mask ModelConfig::mask(Index layer) const {
  Mask mask{.hides_later = causal};
  if (local.empty() || is_local(layer)) mask.window = window;
  return mask;
}

std::string ModelConfig::score_features() const {
  std::string all;
  const auto add = [&](bool there, const char* name) {
    if (there) all += (all.empty() ? "" : " and ") + std::string(name);
  };
  add(rope.has_value(), "rotary positions");
  add(query_key_norm != QueryKeyNormForm::none, "q/k-norm");
  add(has_relative_bias(), "relative positions");
  add(position_heads > 0, "position heads");
  return all;
}

std::string ModelConfig::kind_name() const {
  if (comparing_heads() == 0) return name_of(Mixer::position);
  return contractive ? name_of(Mixer::contractive_l2) : name_of(kind);
}

ModelConfig model_config(const LanguageModelConfig& m) {
  require_sound(m);
  ModelConfig c;
  c.architecture = Architecture::lipscope;
  c.layers = m.layers;
  c.width = m.width;
  c.heads = c.key_heads = m.heads;
  c.head_width = m.width / m.heads;
  c.position_heads = m.position_heads;
  c.heads_apart = m.heads_apart;
  c.position_table = m.positions == Positions::table;
  if (m.positions == Positions::rotary) c.rope = Rotary{.theta = 10'000.0};
  c.distance_bias = m.positions == Positions::relative;
  c.carry = m.join == Join::add      ? 1.0
            : m.join == Join::convex ? 1.0 - m.join_share
                                     : 0.0;
  if (m.join == Join::convex) c.residual_scale = m.join_share;
  c.head_bias = m.head_bias;
  c.mlp_width = m.hidden;
  c.vocabulary = m.characters;
  c.positions = m.context;
  c.token_types = 0;
  c.epsilon = LanguageModelConfig::epsilon;
  c.activation = m.activation;
  c.tied_embeddings = c.attention_bias = c.output_bias = false;
  c.norm = m.norm;
  if (compares(m.mixer)) c.kind = attention_kind(m.mixer);
  c.contractive = m.mixer == Mixer::contractive_l2;
  c.contraction = m.contraction;
  c.divided_by_coordinate = m.division == Division::coordinate;
  c.causal = true;
  c.projections = Projections::side_by_side;
  return c;
}

ModelConfig usual_config(Architecture architecture) {
  ModelConfig c = family_of(architecture).usual;
  c.architecture = architecture;
  if (c.key_heads == 0) c.key_heads = c.heads;
  if (c.head_width == 0) c.head_width = c.width / c.heads;
  const double share = family_of(architecture).rotary_share;
  if (c.rope && share < 1.0)
    c.rope->width =
        static_cast<Index>(static_cast<double>(c.head_width) * share);
  return c;
}

void require_sound(const ModelConfig& c) {
  for (const Index count :
       {c.layers, c.width, c.heads, c.key_heads, c.head_width, c.mlp_width,
        c.vocabulary, c.positions})
    require(count >= 1, "model: a size is {}, expected at least 1", count);
  require(c.heads % c.key_heads == 0,
          "model: {} heads do not divide among {} key heads", c.heads,
          c.key_heads);
  const Family& family = family_of(c.architecture);
  require(!family.keys.head_width.empty() || c.heads * c.head_width == c.width,
          "model: {} heads of width {} do not make {} features", c.heads,
          c.head_width, c.width);
  require(!family.keys.key_heads.empty() || c.key_heads == c.heads,
          "model: {} key heads for {} heads of a {} model", c.key_heads,
          c.heads, name_of(c.architecture));
  require((c.token_types > 0) == !family.outer.types.empty(),
          "model: {} token types of a {} model", c.token_types,
          name_of(c.architecture));
  if (c.rope) {
    const Index turned = c.rope->width == 0 ? c.head_width : c.rope->width;
    require(turned <= c.head_width,
            "model: {} features of a head of {} cannot be rotated", turned,
            c.head_width);
    require(turned % 2 == 0, "model: heads of odd width {} cannot be rotated",
            turned);
    require(!c.rope->slow || c.rope->slow->slow < c.rope->slow->fast,
            "model: rotary positions whose low_freq_factor is not below "
            "high_freq_factor");
  }
  require(c.position_heads >= 0 && c.position_heads <= c.heads &&
              (c.position_heads == 0 || (c.heads_apart && c.causal)),
          "model: {} of {} heads look by position{}", c.position_heads, c.heads,
          c.heads_apart ? "" : ", which need coordinates of their own");
  require(c.architecture == Architecture::lipscope ||
              (!c.heads_apart && c.carry == 1.0 && c.position_table &&
               !c.distance_bias),
          "model: a {} model has heads that share their coordinates, x + f(x) "
          "and its own positions",
          name_of(c.architecture));
  require(std::isfinite(c.carry) && c.carry >= 0.0, "model: a carry of {}",
          c.carry);
  require(!c.heads_apart || (!c.contractive && c.key_heads == c.heads),
          "model: heads apart that are divided by their bound or share keys");
  require(c.embedding_width >= 0 && c.position_offset >= 0 &&
              c.relative_buckets >= 0,
          "model: a size is below 0");
  require(c.relative_buckets % 4 == 0, "model: {} buckets of a relative bias",
          c.relative_buckets);
  require(!c.distance_bias ||
              (c.causal && c.comparing_heads() > 0 && c.relative_buckets == 0 &&
               (!c.contractive || c.divided_by_coordinate)),
          "model: a number for each distance back without heads that compare, "
          "with tokens ahead, beside other relative positions, or where all "
          "heads are divided by one bound");
  require(c.contractive || !c.divided_by_coordinate,
          "model: attention that is divided by coordinate is contractive");
  require(c.layer_groups == 0 || c.layer_groups <= c.layers,
          "model: {} layers in {} groups", c.layers, c.layer_groups);
  require(!c.head_bias || !c.tied_embeddings,
          "model: tie_word_embeddings with a head that has a bias is not "
          "supported");
  require(c.epsilon > 0, "model: epsilon is {}", c.epsilon);
  for (const double scale : {c.embedding_scale, c.residual_scale, c.logit_scale,
                             c.score_scale.value_or(1.0)})
    require(std::isfinite(scale) && scale > 0, "model: a factor is {}", scale);
  require(c.architecture == Architecture::lipscope ||
              (c.kind == Kind::dot && !c.contractive && !c.contraction),
          "model: {} models have dot-product attention",
          name_of(c.architecture));
  require((!c.contractive || c.kind == Kind::l2) &&
              (!c.contraction || (c.contractive && c.norm == NormPlace::none)),
          "model: only l2 is divided by its bound, and only then, without "
          "norms, has it a contraction");
}

ModelConfig parse_model_config(std::string_view text,
                               const std::string& where) {
  const ConfigReader r(text, where);
  const Architecture architecture = architecture_of(r);
  if (architecture == Architecture::lipscope) {
    const LanguageModelConfig own = parse_language_model_config(text, where);
    if (own.mixer == Mixer::lstm)
      r.refuse("mixer", r.need("mixer"),
               "an LSTM has no attention; dot, l2, l2-untied, "
               "contractive-l2 and position can be read");
    return model_config(own);
  }
  const Family& family = family_of(architecture);
  refuse_the_unsupported(r, family);
  const ConfigKeys& k = family.keys;
  ModelConfig c = family.usual;
  c.architecture = architecture;
  c.layers = r.count(k.layers, c.layers, most_layers);
  c.width = r.count(k.width, c.width, most_wide);
  c.heads = r.count(k.heads, c.heads, most_wide);
  // null is as many as heads; nothing said may be another number
  if (c.key_heads == 0 || r.is_null(k.key_heads)) c.key_heads = c.heads;
  c.key_heads = r.count(k.key_heads, c.key_heads, most_wide);
  if (c.heads % c.key_heads != 0)
    throw InputError(fmt::format(
        "{}: {} is {} and {} is {}: {} heads do not divide among {} key heads",
        where, key_in(r, k.heads), c.heads, key_in(r, k.key_heads), c.key_heads,
        c.heads, c.key_heads));
  if (r.is_null(k.head_width)) c.head_width = 0;
  c.head_width = r.count(k.head_width, c.head_width, most_wide);
  if (c.head_width == 0) {
    if (c.width % c.heads != 0)
      throw InputError(fmt::format(
          "{}: {} is {} and {} is {}: {} features do not divide into {} heads",
          where, key_in(r, k.width), c.width, key_in(r, k.heads), c.heads,
          c.width, c.heads));
    c.head_width = c.width / c.heads;
  }
  c.mlp_width = r.count(
      k.mlp_width, family.mlp_of_width ? 4 * c.width : c.mlp_width, most_wide);
  c.vocabulary = r.count(k.vocabulary, c.vocabulary, most_entries);
  c.positions = r.count(k.positions, c.positions, most_entries);
  c.token_types = r.count(k.token_types, c.token_types, most_entries);
  c.embedding_width = r.count(k.embedding_width, c.embedding_width, most_wide);
  c.epsilon = r.positive(k.epsilon, c.epsilon);
  c.activation = r.activation(k.activation, c.activation);
  c.tied_embeddings = r.flag({"tie_word_embeddings"}, c.tied_embeddings);
  c.attention_bias = r.flag(k.attention_bias, c.attention_bias);
  c.output_bias = r.flag(k.output_bias, c.output_bias);
  c.mlp_bias = r.flag(k.mlp_bias, c.mlp_bias);
  c.parallel = r.flag(k.parallel, c.parallel);
  c.causal = r.flag(k.decoder, c.causal);
  if (c.rope) read_rope(r, family, c);
  read_window(r, family, c);
  if (family.read) family.read(r, c);
  try {
    require_sound(c);
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("{}: {}", where, wrong.what()));
  }
  return c;
}

ModelConfig read_model_config(const std::filesystem::path& path) {
  return parse_model_config(read_text_file(path, largest_config),
                            path.string());
}

}  // namespace lipscope
