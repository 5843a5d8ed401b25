#include "lipscope/model/layer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/contraction.h"
#include "lipscope/model/coordinate_contraction.h"
#include "lipscope/model/heads_apart.h"

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

// columns [first, first + width) of xW + b
Affine columns(const Affine& a, Index first, Index width) {
  Affine part{a.weight.middleCols(first, width), {}};
  if (a.bias.size() > 0) part.bias = a.bias.segment(first, width);
  return part;
}

// the same columns of each head, side by side
Affine columns_of_heads(const Affine& a, Index heads, Index first,
                        Index width) {
  const Index stride = a.weight.cols() / heads;
  Affine all{Matrix(a.weight.rows(), heads * width),
             Vector(a.bias.size() > 0 ? heads * width : 0)};
  for (Index h = 0; h < heads; ++h) {
    const Affine one = columns(a, h * stride + first, width);
    all.weight.middleCols(h * width, width) = one.weight;
    if (a.bias.size() > 0) all.bias.segment(h * width, width) = one.bias;
  }
  return all;
}

// Planes of neighbours (2i, 2i + 1) to planes (i, i + m): the same scores,
// where queries and keys are put in the same order.
void part_planes(Affine& a, Index heads, Index turned) {
  const Index k = a.weight.cols() / heads, m = turned / 2;
  const Affine old = a;
  for (Index h = 0; h < heads; ++h)
    for (Index i = 0; i < turned; ++i) {
      const Index to = h * k + (i % 2) * m + i / 2, from = h * k + i;
      a.weight.col(to) = old.weight.col(from);
      if (a.bias.size() > 0) a.bias[to] = old.bias[from];
    }
}

struct QueryKeyValue {
  Affine query, key, value;
};

QueryKeyValue load_projections(const Model& model, const LayerModules& m) {
  const ModelConfig& c = model.config;
  const Index k = c.head_width, q = c.comparing_heads() * k;
  const Index g = c.position_heads > 0 ? q : c.key_heads * k;
  if (m.projections.size() == 3)
    return {load_affine(model, m.projections[0]),
            load_affine(model, m.projections[1]),
            load_affine(model, m.projections[2])};
  if (m.projections.size() == 2)
    return {load_affine(model, m.projections[0]), Affine(),
            load_affine(model, m.projections[1])};
  const Affine all = load_affine(model, m.projections.front());
  if (c.projections == Projections::by_head)
    return {columns_of_heads(all, c.heads, 0, k),
            columns_of_heads(all, c.heads, k, k),
            columns_of_heads(all, c.heads, 2 * k, k)};
  return {columns(all, 0, q), columns(all, q, g), columns(all, q + g, g)};
}

// c_h of heads apart
Vector load_shares(const Model& model, const LayerModules& m) {
  return head_shares(flatten(model.parameters.matrix(weight_of(*m.share))));
}

// x W_O + b, or what stands in its place
Affine load_output(const Model& model, const LayerModules& m) {
  if (m.output) return load_affine(model, *m.output);
  const ModelConfig& c = model.config;
  return {apart_output(load_shares(model, m).tail(c.comparing_heads()),
                       {.first = c.position_heads * c.head_width,
                        .head_width = c.head_width,
                        .width = c.width}),
          {}};
}

std::optional<PositionHeads> load_position_heads(const Model& model,
                                                 const LayerModules& m) {
  const ModelConfig& c = model.config;
  if (c.position_heads == 0) return std::nullopt;
  return PositionHeads{.weights = distance_weights(model.parameters.matrix(
                           weight_of(*m.position_bias))),
                       .value = load_affine(model, *m.position_value).weight,
                       .share = load_shares(model, m).head(c.position_heads),
                       .width = c.width};
}

// a number for each distance back, of a layer of lipscope's own
std::optional<RelativeBias> load_distance_bias(const Model& model,
                                               const LayerModules& m) {
  if (!m.distance_bias) return std::nullopt;
  return RelativeBias{
      .table = model.parameters.matrix(weight_of(*m.distance_bias)).transpose(),
      .looks_back = true};
}

AttentionWeights load_attention(const Model& model, const LayerModules& m) {
  const ModelConfig& c = model.config;
  if (c.comparing_heads() == 0) return {.heads = 0};
  QueryKeyValue read = load_projections(model, m);
  if (c.rope && c.rope_interleaved) {
    const Index turned = c.rope->width == 0 ? c.head_width : c.rope->width;
    part_planes(read.query, c.heads, turned);
    part_planes(read.key, c.key_heads, turned);
  }
  Affine output = load_output(model, m);
  AttentionWeights w{
      .query = std::move(read.query.weight),
      .key = std::move(read.key.weight),
      .value = std::move(read.value.weight),
      .output = std::move(output.weight),
      .query_bias = std::move(read.query.bias),
      .key_bias = std::move(read.key.bias),
      .value_bias = std::move(read.value.bias),
      .output_bias = std::move(output.bias),
      .heads = c.comparing_heads(),
      .key_heads = c.position_heads > 0 ? c.comparing_heads() : c.key_heads};
  // scores are divided by √k where they are made; q/k-norm has it in its gain
  if (c.score_scale && !m.query_norm) {
    const double scale =
        *c.score_scale * std::sqrt(static_cast<double>(c.head_width));
    w.query *= scale;
    w.query_bias *= scale;
  }
  if (c.divided_by_coordinate) {
    const std::optional<RelativeBias> bias = load_distance_bias(model, m);
    const Vector p =
        head_phi_inverses(bias ? &*bias : nullptr, w.heads, c.positions);
    divide_coordinates(w, p, c.contraction.value_or(1.0));
  } else if (c.contractive) {
    const AttentionWeights& r = w;
    w.output *=
        c.contraction.value_or(1.0) /
        contraction<double>({view(r.query), view(r.value), view(r.output)},
                            w.heads, c.positions);
  }
  return w;
}

std::optional<QueryKeyNorm> load_query_key_norm(const Model& model,
                                                const LayerModules& m) {
  if (!m.query_norm) return std::nullopt;
  const ModelConfig& c = model.config;
  const NormWeights query = load_norm(model, *m.query_norm);
  QueryKeyNorm norm{
      .query_gain = query.gain,
      .key_gain = load_norm(model, *m.key_norm).gain,
      .epsilon = query.epsilon,
      .over_heads = c.query_key_norm == QueryKeyNormForm::over_heads};
  if (c.score_scale)
    norm.query_gain *=
        *c.score_scale * std::sqrt(static_cast<double>(c.head_width));
  return norm;
}

MlpWeights load_mlp(const Model& model, const LayerModules& m) {
  Affine up = load_affine(model, m.up), down = load_affine(model, m.down);
  Affine gate;
  if (m.gate) gate = load_affine(model, *m.gate);
  if (model.config.gated && !m.gate) {
    const Index width = model.config.mlp_width;
    gate = columns(up, 0, width);
    up = columns(up, width, width);
  }
  MlpWeights w{.up = std::move(up.weight),
               .gate = std::move(gate.weight),
               .down = std::move(down.weight),
               .up_bias = std::move(up.bias),
               .gate_bias = std::move(gate.bias),
               .down_bias = std::move(down.bias),
               .activation = model.config.activation};
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

void refuse_choices_of_position_heads(const LayerWeights& layer,
                                      const ModelMapOptions& o) {
  if (!o.heads.empty())
    throw InputError(
        "--heads: heads of a layer with position heads cannot be chosen; all "
        "of them run");
  if (o.mask.over(layer.mask) != layer.mask || layer.mask != Mask::causal)
    throw InputError(fmt::format(
        "the mask \"{}\": position heads look back, and have no other mask "
        "than causal",
        name_of(o.mask.over(layer.mask))));
  if (layer.attention.heads == 0 && o.kind.value_or(layer.kind) != layer.kind)
    throw InputError(fmt::format(
        "--kind {}: no head of the layer compares tokens", name_of(*o.kind)));
}

// Heads that compare and heads that look by position write different
// coordinates. Ahead of W_O all stand side by side without their shares: W_O
// then moves the heads that compare behind the others.
template <class Real>
MapPtr<Real> with_position_heads(const LayerWeights& layer, bool project,
                                 const ModelMapOptions& o) {
  refuse_choices_of_position_heads(layer, o);
  const AttentionWeights& comparing = layer.attention;
  PositionHeads heads = *layer.position_heads;
  const Index compared =
      comparing.heads == 0 ? 0 : comparing.heads * comparing.value_width();
  if (!project) {
    heads.share.setOnes();
    heads.width = heads.value.cols() + compared;
  }
  MapPtr<Real> f =
      std::make_unique<PositionHeadsMap<Real>>(heads, o.sequences, o.threads);
  if (comparing.heads == 0) return f;
  AttentionWeights weights = attention_of(layer, o.kind.value_or(layer.kind));
  if (!project) {
    weights.output = apart_output(Vector::Ones(comparing.heads),
                                  {.first = heads.value.cols(),
                                   .head_width = comparing.value_width(),
                                   .width = heads.width});
    weights.output_bias.resize(0);
  }
  return sum<Real>(std::move(f),
                   std::make_unique<MultiHeadAttention<Real>>(
                       weights, attention_options(layer, true, o)));
}

template <class Real>
MapPtr<Real> attention_map(const LayerWeights& layer, bool project,
                           const ModelMapOptions& o) {
  if (layer.position_heads) return with_position_heads<Real>(layer, project, o);
  ChosenAttention chosen = chosen_attention(layer, project, o);
  return std::make_unique<MultiHeadAttention<Real>>(chosen.weights,
                                                    std::move(chosen.options));
}

// f with the norms that a sub-layer has ahead of it and behind it, inside of
// its residual, and its factor
template <class Real>
MapPtr<Real> branch(MapPtr<Real> f, const NormWeights& norm, NormPlace place,
                    const NormWeights& output_norm, double scale_of) {
  if (place != NormPlace::none)
    require(norm.gain.size() > 0,
            "layer_map: the layer was loaded without its norms");
  if (place == NormPlace::pre)
    f = compose<Real>(std::move(f), std::make_unique<LayerNorm<Real>>(norm));
  if (output_norm.gain.size() > 0)
    f = compose<Real>(std::make_unique<LayerNorm<Real>>(output_norm),
                      std::move(f));
  if (scale_of != 1.0) f = scale(static_cast<Real>(scale_of), std::move(f));
  return f;
}

// carry x + branch(x), or norm(carry x + f(x))
template <class Real>
MapPtr<Real> sublayer(MapPtr<Real> inside, double carry,
                      const NormWeights& norm, NormPlace place) {
  MapPtr<Real> sum =
      carry == 0.0 ? std::move(inside)
                   : residual(std::move(inside), static_cast<Real>(carry));
  if (place != NormPlace::post) return sum;
  return compose<Real>(std::make_unique<LayerNorm<Real>>(norm), std::move(sum));
}

}  // namespace

AttentionOptions attention_options(const LayerWeights& layer, bool project,
                                   const ModelMapOptions& o) {
  if (layer.relative_bias && layer.relative_bias->looks_back &&
      !o.mask.over(layer.mask).hides_later)
    throw InputError(fmt::format(
        "the mask \"{}\": the layer has learnt relative positions of tokens "
        "behind, none of tokens ahead",
        name_of(o.mask.over(layer.mask))));
  return {.kind = o.kind.value_or(layer.kind),
          .mask = o.mask.over(layer.mask),
          .heads = o.heads,
          .project = project,
          .sequences = o.sequences,
          .cosine = o.cosine,
          .rope = layer.rope,
          .query_key_norm = layer.query_key_norm,
          .relative_bias = layer.relative_bias,
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

ChosenAttention chosen_attention(const LayerWeights& layer, bool project,
                                 const ModelMapOptions& o) {
  if (layer.position_heads)
    throw InputError(
        "the layer has position heads: its attention is more than heads that "
        "compare tokens, and cannot be searched or run by itself");
  ChosenAttention out{attention_of(layer, o.kind.value_or(layer.kind)),
                      attention_options(layer, project, o)};
  if (o.heads.empty() || !layer.query_key_norm ||
      !layer.query_key_norm->over_heads)
    return out;
  if (!project)
    throw InputError(
        "--map core: heads of a layer whose q/k-norm is one of all heads can "
        "be measured by --map attn");
  const std::vector<Index> chosen = chosen_heads(out.weights, o.heads);
  const Index w = out.weights.value_width();
  for (Index h = 0; h < out.weights.heads; ++h)
    if (std::find(chosen.begin(), chosen.end(), h) == chosen.end())
      out.weights.output.middleRows(h * w, w).setZero();
  out.options.heads.clear();
  return out;
}

NormWeights load_norm(const Model& model, const Module& module) {
  const NormForm form = model.config.norm_form;
  const bool layer = form == NormForm::layer || form == NormForm::layer_gain ||
                     form == NormForm::layer_unscaled;
  NormWeights w{
      .kind = layer ? NormWeights::Kind::layer : NormWeights::Kind::rms,
      .epsilon = model.config.epsilon};
  if (module.stored == Module::Stored::nothing)
    w.gain = Vector::Ones(module.out);
  else
    w.gain = flatten(model.parameters.matrix(weight_of(module)));
  if (form == NormForm::rms_one_plus) w.gain.array() += 1.0;
  if (module.bias) w.bias = flatten(model.parameters.matrix(bias_of(module)));
  return w;
}

std::optional<NormWeights> load_input_norm(const Model& model, Index layer) {
  const std::optional<Module> norm = norm_ahead(model.config, layer);
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
  const ModelConfig& c = model.config;
  const LayerModules m = layer_modules(c, layer);
  const bool whole = map == MapName::block || map == MapName::model;
  const bool around = whole || map == MapName::residual;
  std::vector<Module> needed = attention_modules(m);
  if (map == MapName::residual)
    for (const auto& norm : {m.attention_norm, m.attention_output_norm})
      if (norm) needed.push_back(*norm);
  if (whole) needed = modules_of(m);
  const std::optional<Module> relative = outer_modules(c).relative_bias;
  if (relative) needed.push_back(*relative);
  require_tensors(model, needed,
                  fmt::format("map {} of layer {}", name_of(map), layer));

  LayerWeights w{.attention = load_attention(model, m),
                 .position_heads = load_position_heads(model, m),
                 .norm = c.norm,
                 .attention_unnormed = layer == 0 && c.first_attention_unnormed,
                 .parallel = c.parallel,
                 .residual_scale = c.residual_scale,
                 .carry = c.carry,
                 .mask = c.mask(layer),
                 .kind = c.kind,
                 .query_key_norm = load_query_key_norm(model, m)};
  if (std::find(c.unrotated.begin(), c.unrotated.end(), layer) ==
      c.unrotated.end())
    w.rope = c.rope;
  if (c.local_theta && c.is_local(layer))
    w.rope = Rotary{.theta = *c.local_theta};
  if (relative)
    w.relative_bias =
        RelativeBias{.table = model.parameters.matrix(weight_of(*relative))};
  if (m.distance_bias) w.relative_bias = load_distance_bias(model, m);
  const auto read = [&](const std::optional<Module>& norm, bool asked,
                        NormWeights& to) {
    if (norm && asked) to = load_norm(model, *norm);
  };
  read(m.attention_norm, around, w.attention_norm);
  read(m.attention_output_norm, around, w.attention_output_norm);
  if (whole) w.mlp = load_mlp(model, m);
  read(c.shared_norm ? m.attention_norm : m.mlp_norm, whole, w.mlp_norm);
  read(m.mlp_output_norm, whole, w.mlp_output_norm);
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
  const NormPlace place = layer.attention_norm_place();
  MapPtr<Real> attention = sublayer(
      branch(attention_map<Real>(layer, true, options), layer.attention_norm,
             place, layer.attention_output_norm, layer.residual_scale),
      layer.carry, layer.attention_norm, place);
  if (map == MapName::residual) return attention;
  MapPtr<Real> mlp = std::make_unique<Mlp<Real>>(layer.mlp, options.threads);
  mlp = branch(std::move(mlp), layer.mlp_norm, layer.norm,
               layer.mlp_output_norm, layer.residual_scale);
  if (layer.parallel) {
    require(layer.norm != NormPlace::post,
            "layer_map: MLP and attention beside each other in a post-norm "
            "layer");
    return sum(std::move(attention), std::move(mlp));
  }
  return compose(
      sublayer(std::move(mlp), layer.carry, layer.mlp_norm, layer.norm),
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
