#include "lipscope/model/modules.h"

#include <stdexcept>

#include "lipscope/attention/kinds.h"
#include "lipscope/model/family.h"

namespace lipscope {
namespace {

Module table(std::string name, Index rows, Index d) {
  return {std::move(name), Module::Stored::in_out, rows, d, false};
}

Module norm(std::string name, const ModelConfig& c, Index width) {
  switch (c.norm_form) {
    case NormForm::layer:
      return {std::move(name), Module::Stored::vector, 1, width, true};
    case NormForm::layer_unscaled:
      return {std::move(name), Module::Stored::nothing, 1, width, false};
    default:
      return {std::move(name), Module::Stored::vector, 1, width, false};
  }
}

// of a module by its name; nothing if the family has no such module
template <class Make>
std::optional<Module> named(const std::string& name, const Make& make) {
  if (name.empty()) return std::nullopt;
  return make(name);
}

std::string with_label(std::string at, const std::string& label) {
  const std::size_t place = at.find("{}");
  return at.replace(place, 2, label);
}

}  // namespace

TensorSpec weight_of(const Module& m) {
  switch (m.stored) {
    case Module::Stored::in_out:
      return {m.name + ".weight", {m.in, m.out}};
    case Module::Stored::out_in:
      return {m.name + ".weight", {m.out, m.in}};
    case Module::Stored::vector:
      return {m.name + ".weight", {m.out}};
    case Module::Stored::bare:
      return {m.name, {m.in, m.out}};
    case Module::Stored::nothing:
      break;
  }
  throw std::invalid_argument("weight_of: " + m.name + " has no parameters");
}

TensorSpec bias_of(const Module& m) { return {m.name + ".bias", {m.out}}; }

std::vector<TensorSpec> tensors_of(const Module& m) {
  std::vector<TensorSpec> all;
  if (m.stored != Module::Stored::nothing) all.push_back(weight_of(m));
  if (m.bias) all.push_back(bias_of(m));
  return all;
}

bool has_head(const ModelConfig& c) {
  return c.causal && !family_of(c.architecture).outer.head.empty();
}

OuterModules outer_modules(const ModelConfig& c) {
  const Family& family = family_of(c.architecture);
  const OuterNames& names = family.outer;
  // tokens, positions and types are as wide as their norm
  const Index d = c.embedding_width == 0 ? c.width : c.embedding_width;
  OuterModules m;
  m.tokens = table(names.tokens, c.vocabulary, d);
  if (c.position_table)
    m.positions = named(names.positions, [&](const std::string& name) {
      return table(name, c.position_offset + c.positions, d);
    });
  m.types = named(names.types, [&](const std::string& name) {
    return table(name, c.token_types, d);
  });
  m.embedding_norm = named(names.embedding_norm, [&](const std::string& name) {
    return norm(name, c, d);
  });
  if (c.embedding_width > 0)
    m.embedding_projection =
        named(names.embedding_projection, [&](const std::string& name) {
          return Module{name, Module::Stored::out_in, d, c.width, true};
        });
  m.relative_bias = named(names.relative_bias, [&](const std::string& name) {
    return table(name, c.relative_buckets, c.heads);
  });
  // a post-norm model ends with the norm of its last layer
  if (c.pre_norm() || c.output_norms)
    m.final_norm = named(names.final_norm, [&](const std::string& name) {
      return norm(name, c, c.width);
    });
  if (!c.tied_embeddings)
    m.head = named(names.head, [&](const std::string& name) {
      return Module{
          name,
          family.head_in_out ? Module::Stored::in_out : Module::Stored::out_in,
          c.width, c.vocabulary, c.head_bias};
    });
  return m;
}

LayerModules layer_modules(const ModelConfig& c, Index layer) {
  // of layers that share their weights, those of their group
  const Index stored =
      c.layer_groups == 0 ? layer : layer * c.layer_groups / c.layers;
  LayerModules m = layer_modules(c, std::to_string(stored));
  if (layer == 0 && c.first_attention_unnormed) m.attention_norm.reset();
  return m;
}

LayerModules layer_modules(const ModelConfig& c, const std::string& label) {
  const Family& family = family_of(c.architecture);
  const LayerNames& names = family.layer;
  const std::string at = with_label(names.at, label);
  const Module::Stored matrix =
      family.stored_in_out ? Module::Stored::in_out : Module::Stored::out_in;
  const auto linear = [&](const std::string& name, Index in, Index out,
                          bool bias) {
    return Module{at + name, matrix, in, out, bias};
  };
  const auto norm_named = [&](const std::string& name, bool there,
                              Index width) -> std::optional<Module> {
    if (!there || name.empty()) return std::nullopt;
    return norm(at + name, c, width);
  };
  // position heads have neither queries nor keys
  const Index q = c.comparing_heads() * c.head_width;
  const Index k = c.position_heads > 0 ? q : c.key_heads * c.head_width;
  const Index d = c.width, m = c.mlp_width;
  LayerModules l;
  if (c.comparing_heads() == 0)
    l.projections = {};
  else if (kind_of(c.kind).tied)
    l.projections = {linear(names.query, d, q, c.attention_bias),
                     linear(names.value, d, k, c.attention_bias)};
  else if (c.projections == Projections::apart)
    l.projections = {linear(names.query, d, q, c.attention_bias),
                     linear(names.key, d, k, c.attention_bias),
                     linear(names.value, d, k, c.attention_bias)};
  else
    l.projections = {linear(names.joined, d, q + 2 * k, c.attention_bias)};
  if (!c.heads_apart) l.output = linear(names.output, q, d, c.output_bias);
  if (c.position_heads > 0) {
    l.position_bias = Module{at + names.position_bias, Module::Stored::bare,
                             c.position_heads, c.positions};
    l.position_value =
        linear(names.position_value, d, c.position_heads * c.head_width, false);
  }
  if (c.heads_apart)
    l.share = Module{at + names.share, Module::Stored::bare, 1, c.heads};
  if (c.distance_bias)
    l.distance_bias = Module{at + names.distance_bias, Module::Stored::bare,
                             c.comparing_heads(), c.positions};
  const bool over = c.query_key_norm == QueryKeyNormForm::over_heads;
  const bool normed = c.query_key_norm != QueryKeyNormForm::none;
  l.query_norm = norm_named(names.query_norm, normed, over ? q : c.head_width);
  l.key_norm = norm_named(names.key_norm, normed, over ? k : c.head_width);
  const bool joined = !names.joined_gate.empty();
  l.up = linear(joined ? names.joined_gate : names.up, d, joined ? 2 * m : m,
                c.mlp_bias);
  l.down = linear(names.down, m, d, c.mlp_bias);
  if (c.gated && !joined) l.gate = linear(names.gate, d, m, c.mlp_bias);
  const bool norms = c.norm != NormPlace::none;
  l.attention_norm = norm_named(names.attention_norm, norms, d);
  l.mlp_norm = norm_named(names.mlp_norm, norms && !c.shared_norm, d);
  l.attention_output_norm =
      norm_named(names.attention_output_norm, c.output_norms, d);
  l.mlp_output_norm = norm_named(names.mlp_output_norm, c.output_norms, d);
  return l;
}

std::optional<Module> norm_ahead(const ModelConfig& c, Index layer) {
  if (c.pre_norm() && layer == 0 && c.first_attention_unnormed)
    return outer_modules(c).embedding_norm;
  if (c.pre_norm()) return layer_modules(c, layer).attention_norm;
  if (c.norm == NormPlace::none) return std::nullopt;
  if (layer > 0) return layer_modules(c, layer - 1).mlp_norm;
  const OuterModules outer = outer_modules(c);
  if (outer.embedding_projection) return std::nullopt;
  return outer.embedding_norm;
}

std::vector<Module> attention_modules(const LayerModules& m) {
  std::vector<Module> all = m.projections;
  for (const auto& module :
       {m.output, m.position_bias, m.position_value, m.share, m.distance_bias,
        m.query_norm, m.key_norm})
    if (module) all.push_back(*module);
  return all;
}

std::vector<Module> modules_of(const LayerModules& m) {
  std::vector<Module> all;
  if (m.attention_norm) all.push_back(*m.attention_norm);
  for (const Module& module : attention_modules(m)) all.push_back(module);
  if (m.attention_output_norm) all.push_back(*m.attention_output_norm);
  if (m.mlp_norm) all.push_back(*m.mlp_norm);
  if (m.gate) all.push_back(*m.gate);
  all.insert(all.end(), {m.up, m.down});
  if (m.mlp_output_norm) all.push_back(*m.mlp_output_norm);
  return all;
}

std::vector<Module> modules_of(const OuterModules& m) {
  std::vector<Module> all;
  if (m.reads_tokens()) all.push_back(m.tokens);
  for (const auto& module :
       {m.positions, m.types, m.embedding_norm, m.embedding_projection,
        m.relative_bias, m.final_norm, m.head})
    if (module) all.push_back(*module);
  return all;
}

double parameter_count(const ModelConfig& config) {
  const auto numbers = [](const std::vector<Module>& modules) {
    double sum = 0.0;
    for (const Module& m : modules)
      for (const TensorSpec& tensor : tensors_of(m)) {
        double size = 1.0;
        for (const Index axis : tensor.shape) size *= static_cast<double>(axis);
        sum += size;
      }
    return sum;
  };
  const Index layers =
      config.layer_groups == 0 ? config.layers : config.layer_groups;
  return numbers(modules_of(outer_modules(config))) +
         numbers(modules_of(layer_modules(config, 0))) +
         static_cast<double>(layers - 1) *
             numbers(modules_of(layer_modules(config, "*")));
}

}  // namespace lipscope
