#include "lipscope/model/modules.h"

#include <stdexcept>

#include "lipscope/attention/kinds.h"

namespace lipscope {
namespace {

Module table(std::string name, Index rows, Index d) {
  return {std::move(name), Module::Stored::in_out, rows, d, false};
}

Module norm(std::string name, const ModelConfig& c) {
  return {std::move(name), Module::Stored::vector, 1, c.width,
          c.architecture != Architecture::llama};
}

LayerModules gpt2_layer(const ModelConfig& c, const std::string& at) {
  const auto conv = [&](const char* name, Index in, Index out) {
    return Module{at + name, Module::Stored::in_out, in, out, true};
  };
  return {.projections = {conv("attn.c_attn", c.width, 3 * c.width)},
          .output = conv("attn.c_proj", c.width, c.width),
          .up = conv("mlp.c_fc", c.width, c.mlp_width),
          .down = conv("mlp.c_proj", c.mlp_width, c.width),
          .attention_norm = norm(at + "ln_1", c),
          .mlp_norm = norm(at + "ln_2", c),
          .gate = {}};
}

LayerModules bert_layer(const ModelConfig& c, const std::string& at) {
  const auto linear = [&](const char* name, Index in, Index out) {
    return Module{at + name, Module::Stored::out_in, in, out, true};
  };
  return {.projections = {linear("attention.self.query", c.width, c.width),
                          linear("attention.self.key", c.width, c.width),
                          linear("attention.self.value", c.width, c.width)},
          .output = linear("attention.output.dense", c.width, c.width),
          .up = linear("intermediate.dense", c.width, c.mlp_width),
          .down = linear("output.dense", c.mlp_width, c.width),
          .attention_norm = norm(at + "attention.output.LayerNorm", c),
          .mlp_norm = norm(at + "output.LayerNorm", c),
          .gate = {}};
}

LayerModules llama_layer(const ModelConfig& c, const std::string& at) {
  const auto linear = [&](const char* name, Index in, Index out, bool bias) {
    return Module{at + name, Module::Stored::out_in, in, out, bias};
  };
  const Index q = c.heads * c.head_width, k = c.key_heads * c.head_width;
  const bool b = c.attention_bias, mb = c.mlp_bias;
  return {.projections = {linear("self_attn.q_proj", c.width, q, b),
                          linear("self_attn.k_proj", c.width, k, b),
                          linear("self_attn.v_proj", c.width, k, b)},
          .output = linear("self_attn.o_proj", q, c.width, b),
          .up = linear("mlp.up_proj", c.width, c.mlp_width, mb),
          .down = linear("mlp.down_proj", c.mlp_width, c.width, mb),
          .attention_norm = norm(at + "input_layernorm", c),
          .mlp_norm = norm(at + "post_attention_layernorm", c),
          .gate = linear("mlp.gate_proj", c.width, c.mlp_width, mb)};
}

LayerModules own_layer(const ModelConfig& c, const std::string& at) {
  const auto linear = [&](const char* name, Index in, Index out, bool bias) {
    return Module{at + name, Module::Stored::in_out, in, out, bias};
  };
  const auto square = [&](const char* name) {
    return linear(name, c.width, c.width, false);
  };
  LayerModules m{.projections = {},
                 .output = square("attn.o"),
                 .up = linear("mlp.up", c.width, c.mlp_width, true),
                 .down = linear("mlp.down", c.mlp_width, c.width, true),
                 .attention_norm = {},
                 .mlp_norm = {},
                 .gate = {}};
  if (kind_of(c.kind).tied)
    m.projections = {square("attn.q"), square("attn.v")};
  else
    m.projections = {linear("attn.qkv", c.width, 3 * c.width, false)};
  if (c.norm != NormPlace::none) {
    m.attention_norm = norm(at + "ln_1", c);
    m.mlp_norm = norm(at + "ln_2", c);
  }
  return m;
}

}  // namespace

TensorSpec weight_of(const Module& m) {
  switch (m.stored) {
    case Module::Stored::in_out:
      return {m.name + ".weight", {m.in, m.out}};
    case Module::Stored::out_in:
      return {m.name + ".weight", {m.out, m.in}};
    default:
      return {m.name + ".weight", {m.out}};
  }
}

TensorSpec bias_of(const Module& m) { return {m.name + ".bias", {m.out}}; }

std::vector<TensorSpec> tensors_of(const Module& m) {
  std::vector<TensorSpec> all{weight_of(m)};
  if (m.bias) all.push_back(bias_of(m));
  return all;
}

OuterModules outer_modules(const ModelConfig& c) {
  OuterModules m;
  switch (c.architecture) {
    case Architecture::gpt2:
      m.tokens = table("wte", c.vocabulary, c.width);
      m.positions = table("wpe", c.positions, c.width);
      m.final_norm = norm("ln_f", c);
      break;
    case Architecture::bert:
      m.tokens = table("embeddings.word_embeddings", c.vocabulary, c.width);
      m.positions =
          table("embeddings.position_embeddings", c.positions, c.width);
      m.types =
          table("embeddings.token_type_embeddings", c.token_types, c.width);
      m.embedding_norm = norm("embeddings.LayerNorm", c);
      return m;
    case Architecture::llama:
      m.tokens = table("embed_tokens", c.vocabulary, c.width);
      m.final_norm = norm("norm", c);
      break;
    case Architecture::lipscope:
      m.tokens = table("wte", c.vocabulary, c.width);
      m.positions = table("wpe", c.positions, c.width);
      if (c.pre_norm()) m.final_norm = norm("ln_f", c);
      m.head = Module{"lm_head", Module::Stored::in_out, c.width, c.vocabulary};
      return m;
  }
  if (!c.tied_embeddings)
    m.head = Module{"lm_head", Module::Stored::out_in, c.width, c.vocabulary};
  return m;
}

LayerModules layer_modules(const ModelConfig& c, Index layer) {
  return layer_modules(c, std::to_string(layer));
}

LayerModules layer_modules(const ModelConfig& c, const std::string& label) {
  switch (c.architecture) {
    case Architecture::gpt2:
      return gpt2_layer(c, "h." + label + ".");
    case Architecture::bert:
      return bert_layer(c, "encoder.layer." + label + ".");
    case Architecture::llama:
      return llama_layer(c, "layers." + label + ".");
    case Architecture::lipscope:
      return own_layer(c, "h." + label + ".");
  }
  throw std::invalid_argument("layer_modules: no such architecture");
}

std::vector<Module> modules_of(const LayerModules& m) {
  std::vector<Module> all;
  if (m.attention_norm) all.push_back(*m.attention_norm);
  all.insert(all.end(), m.projections.begin(), m.projections.end());
  all.push_back(m.output);
  if (m.mlp_norm) all.push_back(*m.mlp_norm);
  if (m.gate) all.push_back(*m.gate);
  all.insert(all.end(), {m.up, m.down});
  return all;
}

std::vector<Module> modules_of(const OuterModules& m) {
  std::vector<Module> all{m.tokens};
  for (const auto& module :
       {m.positions, m.types, m.embedding_norm, m.final_norm, m.head})
    if (module) all.push_back(*module);
  return all;
}

double parameter_count(const ModelConfig& config) {
  const auto numbers = [](const std::vector<Module>& modules) {
    double sum = 0.0;
    for (const Module& m : modules) {
      const auto in = static_cast<double>(m.in);
      const auto out = static_cast<double>(m.out);
      sum += m.stored == Module::Stored::vector ? out : in * out;
      if (m.bias) sum += out;
    }
    return sum;
  };
  return numbers(modules_of(outer_modules(config))) +
         static_cast<double>(config.layers) *
             numbers(modules_of(layer_modules(config, "*")));
}

}  // namespace lipscope
