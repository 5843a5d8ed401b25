#include "lipscope/model/config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/safetensors_header.h"
#include "lipscope/io/text_file.h"
#include "lipscope/model/config_reader.h"

namespace lipscope {
namespace {

using nlohmann::json;

Architecture architecture_of(const ConfigReader& r) {
  const std::string type = r.text("model_type", "");
  if (type == "gpt2") return Architecture::gpt2;
  if (type == "bert") return Architecture::bert;
  if (type == "llama") return Architecture::llama;
  if (type == "lipscope") return Architecture::lipscope;
  if (type.empty())
    throw InputError(fmt::format(
        "{}: no model_type; gpt2, bert, llama and lipscope can be read",
        r.where()));
  throw InputError(fmt::format(
      "{}: model_type is {}; gpt2, bert, llama and lipscope can be read",
      r.where(), printable(type)));
}

// what no architecture here has
void refuse_the_unsupported(const ConfigReader& r) {
  r.refuse_if("quantization_config", "quantisation");
  r.refuse_if("add_cross_attention", "cross-attention");
  r.refuse_if("is_encoder_decoder", "an encoder-decoder model");
  r.refuse_if("sliding_window", "a sliding window");
  for (const char* key :
       {"num_experts", "num_local_experts", "n_routed_experts"})
    r.refuse_if(key, "a mixture of experts");
  for (const char* key : {"qk_norm", "use_qk_norm", "qk_layernorm"})
    r.refuse_if(key, "q/k-norm");
  if (const json* pruned = r.find("pruned_heads"))
    if (!pruned->empty())
      r.refuse("pruned_heads", *pruned, "pruned heads are not supported");
  if (const json* types = r.find("layer_types"))
    for (const json& type : *types)
      if (type != "full_attention")
        r.refuse("layer_types", type, "only full_attention is supported");
}

// rope_theta stands by itself or, in newer files, in rope_parameters
double rope_theta_of(const ConfigReader& r) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* scaling = r.find(key);
    if (scaling == nullptr) continue;
    if (!scaling->is_object()) r.refuse(key, *scaling, "expected an object");
    for (const char* type : {"rope_type", "type"})
      if (scaling->contains(type) && scaling->at(type) != "default")
        r.refuse(key, *scaling, "scaled rotary positions are not supported");
    for (const auto& [name, value] : scaling->items())
      if (name != "rope_type" && name != "type" && name != "rope_theta")
        r.refuse(key, *scaling,
                 "rotary positions with more than a theta are not supported");
  }
  if (const json* factor = r.find("partial_rotary_factor"))
    if (!factor->is_number() || factor->get<double>() != 1.0)
      r.refuse("partial_rotary_factor", *factor,
               "partly rotated heads are not supported");
  const json* parameters = r.find("rope_parameters");
  if (parameters != nullptr && parameters->contains("rope_theta"))
    return r.positive_number("rope_theta", parameters->at("rope_theta"));
  return r.positive("rope_theta", 10'000.0);
}

ModelConfig read_gpt2(const ConfigReader& r) {
  ModelConfig c = usual_config(Architecture::gpt2);
  c.layers = r.count({"n_layer", "num_hidden_layers"}, c.layers, most_layers);
  c.width = r.count({"n_embd", "hidden_size"}, c.width, most_wide);
  c.heads = c.key_heads =
      r.count({"n_head", "num_attention_heads"}, c.heads, most_wide);
  c.mlp_width = r.count({"n_inner"}, 4 * c.width, most_wide);
  c.vocabulary = r.count({"vocab_size"}, c.vocabulary, most_entries);
  c.positions = r.count({"n_positions", "max_position_embeddings"}, c.positions,
                        most_entries);
  c.epsilon = r.positive("layer_norm_epsilon", c.epsilon);
  c.activation = r.activation("activation_function", "gelu_new");
  c.tied_embeddings = r.flag("tie_word_embeddings", true);
  r.refuse_unless("scale_attn_weights", true, "attention without 1/sqrt(k)");
  r.refuse_unless("scale_attn_by_inverse_layer_idx", false,
                  "attention scaled by the layer");
  return c;
}

ModelConfig read_bert(const ConfigReader& r) {
  ModelConfig c = usual_config(Architecture::bert);
  c.layers = r.count({"num_hidden_layers"}, c.layers, most_layers);
  c.width = r.count({"hidden_size"}, c.width, most_wide);
  c.heads = c.key_heads = r.count({"num_attention_heads"}, c.heads, most_wide);
  c.mlp_width = r.count({"intermediate_size"}, c.mlp_width, most_wide);
  c.vocabulary = r.count({"vocab_size"}, c.vocabulary, most_entries);
  c.positions = r.count({"max_position_embeddings"}, c.positions, most_entries);
  c.token_types = r.count({"type_vocab_size"}, c.token_types, most_entries);
  c.epsilon = r.positive("layer_norm_eps", c.epsilon);
  c.activation = r.activation("hidden_act", "gelu");
  c.tied_embeddings = r.flag("tie_word_embeddings", true);
  r.refuse_if("is_decoder", "BERT as a decoder");
  if (r.text("position_embedding_type", "absolute") != "absolute")
    r.refuse("position_embedding_type", *r.find("position_embedding_type"),
             "only absolute positions are supported");
  return c;
}

ModelConfig read_llama(const ConfigReader& r) {
  ModelConfig c = usual_config(Architecture::llama);
  c.layers = r.count({"num_hidden_layers"}, c.layers, most_layers);
  c.width = r.count({"hidden_size"}, c.width, most_wide);
  c.heads = r.count({"num_attention_heads"}, c.heads, most_wide);
  c.key_heads = r.count({"num_key_value_heads"}, c.heads, most_wide);
  c.mlp_width = r.count({"intermediate_size"}, c.mlp_width, most_wide);
  c.vocabulary = r.count({"vocab_size"}, c.vocabulary, most_entries);
  c.positions = r.count({"max_position_embeddings"}, c.positions, most_entries);
  c.epsilon = r.positive("rms_norm_eps", c.epsilon);
  c.activation = r.activation("hidden_act", "silu");
  c.rope_theta = rope_theta_of(r);
  c.tied_embeddings = r.flag("tie_word_embeddings", false);
  c.attention_bias = r.flag("attention_bias", false);
  c.mlp_bias = r.flag("mlp_bias", false);
  if (r.find("head_dim") != nullptr)
    c.head_width = r.count({"head_dim"}, 1, most_wide);
  else
    c.head_width = 0;  // width/heads, below
  return c;
}

}  // namespace

std::string name_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::gpt2:
      return "gpt2";
    case Architecture::bert:
      return "bert";
    case Architecture::llama:
      return "llama";
    case Architecture::lipscope:
      return "lipscope";
  }
  throw std::invalid_argument("name_of: no such architecture");
}

Mask ModelConfig::mask() const {
  return architecture == Architecture::bert ? Mask::none : Mask::causal;
}

std::string ModelConfig::kind_name() const {
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
  c.mlp_width = m.hidden;
  c.vocabulary = m.characters;
  c.positions = m.context;
  c.token_types = 0;
  c.epsilon = LanguageModelConfig::epsilon;
  c.activation = m.activation;
  c.tied_embeddings = c.attention_bias = false;
  c.norm = m.norm;
  c.kind = attention_kind(m.mixer);
  c.contractive = m.mixer == Mixer::contractive_l2;
  c.contraction = m.contraction;
  return c;
}

ModelConfig usual_config(Architecture architecture) {
  if (architecture == Architecture::lipscope)
    return model_config({.characters = 65});
  ModelConfig c;
  c.architecture = architecture;
  if (architecture != Architecture::bert) c.norm = NormPlace::pre;
  if (architecture == Architecture::gpt2) {
    c.vocabulary = 50257;
    c.positions = 1024;
    c.token_types = 0;
    c.epsilon = 1e-5;
    c.activation = Activation::gelu_tanh;
  } else if (architecture == Architecture::llama) {
    c.layers = c.heads = c.key_heads = 32;
    c.width = 4096;
    c.head_width = 128;
    c.mlp_width = 11008;
    c.vocabulary = 32000;
    c.positions = 2048;
    c.token_types = 0;
    c.epsilon = 1e-6;
    c.activation = Activation::silu;
    c.rope_theta = 10'000.0;
    c.tied_embeddings = c.attention_bias = c.mlp_bias = false;
  }
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
  require(c.architecture == Architecture::llama ||
              (c.heads * c.head_width == c.width && c.key_heads == c.heads),
          "model: {} heads of width {} do not make {} features", c.heads,
          c.head_width, c.width);
  require(c.rope_theta.has_value() == (c.architecture == Architecture::llama),
          "model: rotary positions are Llama's");
  require(!c.rope_theta || c.head_width % 2 == 0,
          "model: heads of odd width {} cannot be rotated", c.head_width);
  require((c.token_types > 0) == (c.architecture == Architecture::bert),
          "model: {} token types of a {} model", c.token_types,
          name_of(c.architecture));
  require(c.epsilon > 0, "model: epsilon is {}", c.epsilon);
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
               "an LSTM has no attention; dot, l2, l2-untied and "
               "contractive-l2 can be read");
    return model_config(own);
  }
  refuse_the_unsupported(r);
  ModelConfig c = architecture == Architecture::gpt2   ? read_gpt2(r)
                  : architecture == Architecture::bert ? read_bert(r)
                                                       : read_llama(r);
  if (architecture != Architecture::llama || c.head_width == 0) {
    if (c.width % c.heads != 0)
      throw InputError(
          fmt::format("{}: {} features do not divide into {} heads", where,
                      c.width, c.heads));
    c.head_width = c.width / c.heads;
  }
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
