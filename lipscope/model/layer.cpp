#include "lipscope/model/layer.h"

#include <unistd.h>

#include <algorithm>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/contraction.h"

namespace lipscope {
namespace {

// x W + b, W [in×out]
struct Affine {
  Matrix weight;
  Vector bias;
};

Affine load_affine(const Model& model, const Module& module) {
  Affine a{model.parameters.matrix(weight_of(module)), {}};
  if (module.stored == Module::Stored::out_in) a.weight.transposeInPlace();
  if (module.bias) a.bias = flatten(model.parameters.matrix(bias_of(module)));
  return a;
}

AttentionWeights load_attention(const Model& model, const LayerModules& m) {
  AttentionWeights w;
  w.heads = model.config.heads;
  w.key_heads = model.config.key_heads;
  if (m.projections.size() == 1) {
    // q, k and v side by side
    const Affine qkv = load_affine(model, m.projections.front());
    const Index d = model.config.width;
    w.query = qkv.weight.leftCols(d);
    w.key = qkv.weight.middleCols(d, d);
    w.value = qkv.weight.rightCols(d);
    if (qkv.bias.size() > 0) {
      w.query_bias = qkv.bias.head(d);
      w.key_bias = qkv.bias.segment(d, d);
      w.value_bias = qkv.bias.tail(d);
    }
  } else {
    const auto read = [&](std::size_t i, Matrix& weight, Vector& bias) {
      Affine a = load_affine(model, m.projections[i]);
      weight = std::move(a.weight);
      bias = std::move(a.bias);
    };
    read(0, w.query, w.query_bias);
    const bool tied = m.projections.size() == 2;
    if (!tied) read(1, w.key, w.key_bias);
    read(tied ? 1 : 2, w.value, w.value_bias);
  }
  Affine output = load_affine(model, m.output);
  w.output = std::move(output.weight);
  w.output_bias = std::move(output.bias);
  if (model.config.contractive) {
    const AttentionWeights& r = w;
    w.output *=
        model.config.contraction.value_or(1.0) /
        contraction<double>({view(r.query), view(r.value), view(r.output)},
                            w.heads, model.config.positions);
  }
  return w;
}

MlpWeights load_mlp(const Model& model, const LayerModules& m) {
  Affine up = load_affine(model, m.up), down = load_affine(model, m.down);
  MlpWeights w{.up = std::move(up.weight),
               .down = std::move(down.weight),
               .up_bias = std::move(up.bias),
               .down_bias = std::move(down.bias),
               .activation = model.config.activation};
  if (m.gate) {
    Affine gate = load_affine(model, *m.gate);
    w.gate = std::move(gate.weight);
    w.gate_bias = std::move(gate.bias);
  }
  if (const std::optional<double> c = model.config.contraction) {
    const MlpWeights& r = w;
    w.down *=
        *c / mlp_contraction<double>({view(r.up), view(r.down)}, w.activation);
  }
  return w;
}

// a quarter of the machine's memory, unless something else is said
std::uint64_t share_of_memory(std::uint64_t asked, Index layers) {
  const std::uint64_t all =
      asked > 0 ? asked
                : static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE)) / 4;
  return std::max<std::uint64_t>(1, all / static_cast<std::uint64_t>(layers));
}

template <class Real>
MapPtr<Real> attention_map(const LayerWeights& layer, bool project,
                           const ModelMapOptions& o) {
  return std::make_unique<MultiHeadAttention<Real>>(
      attention_of(layer, o.kind.value_or(layer.kind)),
      attention_options(layer, project, o));
}

// f as a sub-layer: x + f(norm x), norm(x + f(x)), or x + f(x)
template <class Real>
MapPtr<Real> sublayer(MapPtr<Real> f, const NormWeights& norm,
                      NormPlace place) {
  if (place == NormPlace::none) return residual(std::move(f));
  require(norm.gain.size() > 0,
          "layer_map: the layer was loaded without its norms");
  MapPtr<Real> n = std::make_unique<LayerNorm<Real>>(norm);
  return place == NormPlace::pre
             ? residual(compose(std::move(f), std::move(n)))
             : compose(std::move(n), residual(std::move(f)));
}

}  // namespace

AttentionOptions attention_options(const LayerWeights& layer, bool project,
                                   const ModelMapOptions& o) {
  return {.kind = o.kind.value_or(layer.kind),
          .mask = o.mask.value_or(layer.mask),
          .heads = o.heads,
          .project = project,
          .sequences = o.sequences,
          .cosine = o.cosine,
          .rope_theta = layer.rope_theta,
          .threads = o.threads,
          .memory = o.memory};
}

std::string name_of(MapName map) {
  switch (map) {
    case MapName::core:
      return "core";
    case MapName::attn:
      return "attn";
    case MapName::residual:
      return "residual";
    case MapName::block:
      return "block";
    case MapName::model:
      return "model";
  }
  throw std::invalid_argument("name_of: no such map");
}

AttentionWeights attention_of(const LayerWeights& layer, Kind kind) {
  AttentionWeights weights = layer.attention;
  if (kind_of(kind).tied) {
    weights.key.resize(0, 0);
    weights.key_bias.resize(0);
  }
  return weights;
}

NormWeights load_norm(const Model& model, const Module& module) {
  NormWeights w{.kind = model.config.architecture == Architecture::llama
                            ? NormWeights::Kind::rms
                            : NormWeights::Kind::layer,
                .gain = flatten(model.parameters.matrix(weight_of(module))),
                .epsilon = model.config.epsilon};
  if (module.bias) w.bias = flatten(model.parameters.matrix(bias_of(module)));
  return w;
}

std::optional<NormWeights> load_input_norm(const Model& model, Index layer) {
  const ModelConfig& c = model.config;
  const std::optional<Module> norm =
      c.pre_norm() ? layer_modules(c, layer).attention_norm
      : layer > 0  ? layer_modules(c, layer - 1).mlp_norm
                   : outer_modules(c).embedding_norm;
  if (!norm) return std::nullopt;
  return load_norm(model, *norm);
}

std::optional<NormWeights> load_final_norm(const Model& model) {
  const OuterModules outer = outer_modules(model.config);
  if (!outer.final_norm) return std::nullopt;
  return load_norm(model, *outer.final_norm);
}

LayerWeights load_layer(const Model& model, Index layer, MapName map) {
  require(layer >= 0 && layer < model.config.layers,
          "load_layer: layer {} of a model with {}", layer,
          model.config.layers);
  const LayerModules m = layer_modules(model.config, layer);
  const bool whole = map == MapName::block || map == MapName::model;
  std::vector<Module> needed = m.projections;
  needed.push_back(m.output);
  if (map == MapName::residual && m.attention_norm)
    needed.push_back(*m.attention_norm);
  if (whole) needed = modules_of(m);
  require_tensors(model, needed,
                  fmt::format("map {} of layer {}", name_of(map), layer));

  LayerWeights w{.attention = load_attention(model, m),
                 .norm = model.config.norm,
                 .mask = model.config.mask(),
                 .kind = model.config.kind,
                 .rope_theta = model.config.rope_theta};
  if (m.attention_norm && (whole || map == MapName::residual))
    w.attention_norm = load_norm(model, *m.attention_norm);
  if (whole) w.mlp = load_mlp(model, m);
  if (m.mlp_norm && whole) w.mlp_norm = load_norm(model, *m.mlp_norm);
  return w;
}

template <class Real>
MapPtr<Real> layer_map(const LayerWeights& layer, MapName map,
                       const ModelMapOptions& options) {
  require(map != MapName::model, "layer_map: a model is no map of one layer");
  if (map == MapName::core || map == MapName::attn)
    return attention_map<Real>(layer, map == MapName::attn, options);
  require(options.heads.empty(),
          "layer_map: the map {} is of the model as it runs, with all heads",
          name_of(map));
  MapPtr<Real> attention = sublayer(attention_map<Real>(layer, true, options),
                                    layer.attention_norm, layer.norm);
  if (map == MapName::residual) return attention;
  MapPtr<Real> mlp = std::make_unique<Mlp<Real>>(layer.mlp, options.threads);
  return compose(sublayer(std::move(mlp), layer.mlp_norm, layer.norm),
                 std::move(attention));
}

template <class Real>
MapPtr<Real> model_map(const Model& model, const ModelMapOptions& options) {
  ModelMapOptions each = options;
  each.memory = share_of_memory(options.memory, model.config.layers);
  MapPtr<Real> all;
  if (const std::optional<NormWeights> norm = load_final_norm(model))
    all = std::make_unique<LayerNorm<Real>>(*norm);
  // From the last layer down: what is composed is (((norm · last) · …) ·
  // first), which linearises with one evaluation of each layer. The other way
  // round each would be evaluated once for every layer after it.
  for (Index l = model.config.layers - 1; l >= 0; --l) {
    MapPtr<Real> block =
        layer_map<Real>(load_layer(model, l), MapName::block, each);
    all = all ? compose(std::move(all), std::move(block)) : std::move(block);
  }
  return all;
}

template MapPtr<float> layer_map(const LayerWeights&, MapName,
                                 const ModelMapOptions&);
template MapPtr<double> layer_map(const LayerWeights&, MapName,
                                  const ModelMapOptions&);
template MapPtr<float> model_map(const Model&, const ModelMapOptions&);
template MapPtr<double> model_map(const Model&, const ModelMapOptions&);

}  // namespace lipscope
