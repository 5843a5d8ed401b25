#include "lipscope/theory/layer_bounds.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"

namespace lipscope {
namespace {

// the constant of a branch, with what stands between it and the residual sum
Magnitude with_output(const LayerWeights& layer, const NormWeights& norm,
                      Magnitude inside) {
  if (norm.gain.size() > 0) inside = inside * norm_layer_everywhere(norm);
  if (layer.residual_scale != 1.0) inside = inside * layer.residual_scale;
  return inside;
}

}  // namespace

std::vector<Bound> attention_bounds(const LayerWeights& layer, bool project,
                                    const ModelMapOptions& o, Index n,
                                    const TokenSet& tokens) {
  const bool rope = layer.rope.has_value();
  if (layer.position_heads) return {};
  if (layer.query_key_norm) return {};
  const Kind kind = o.kind.value_or(layer.kind);
  if (rope && !kind_bounds(kind).rope) return {};
  if (layer.relative_bias && !kind_bounds(kind).relative) return {};
  return bounds(attention_of(layer, kind),
                {.kind = kind,
                 .mask = o.mask.over(layer.mask),
                 .heads = o.heads,
                 .project = project,
                 .n = n,
                 .radius = tokens.radius,
                 .norm = tokens.norm,
                 .rope = rope,
                 .cosine = o.cosine,
                 .relative_bias = layer.relative_bias});
}

BlockParts parts_everywhere(const LayerWeights& layer, MapName map,
                            Magnitude attention) {
  BlockParts parts{attention, 1.0, 1.0, 1.0};
  if (map == MapName::core || map == MapName::attn) return parts;
  const bool norms = layer.norm != NormPlace::none;
  parts.attention = with_output(layer, layer.attention_output_norm, attention);
  const NormPlace place = layer.attention_norm_place();
  if (place != NormPlace::none)
    parts.attention_norm = norm_layer_everywhere(layer.attention_norm);
  if (map == MapName::residual) return parts;
  const MlpNorms mlp = mlp_norms(layer.mlp);
  if (!norms) {
    require(!mlp.gated, "parts: a gated MLP reads tokens of any length");
    parts.mlp = with_output(layer, layer.mlp_output_norm, mlp_above(mlp, 0.0));
    return parts;
  }
  const NormWeights& ahead =
      layer.pre_norm() ? layer.mlp_norm : layer.attention_norm;
  parts.mlp = with_output(layer, layer.mlp_output_norm,
                          mlp_above(mlp, norm_layer_radius(ahead)));
  parts.mlp_norm = norm_layer_everywhere(layer.mlp_norm);
  return parts;
}

std::optional<LayerBound> layer_bound_everywhere(const LayerWeights& layer,
                                                 MapName map,
                                                 const ModelMapOptions& options,
                                                 Index n,
                                                 const TokenSet& tokens) {
  require(map == MapName::residual || map == MapName::block,
          "layer bound: {} is attention alone, or more than a layer",
          name_of(map));
  if (layer.carry != 1.0) return std::nullopt;
  const std::optional<Bound> attention =
      best_bound(attention_bounds(layer, true, options, n, tokens), Norm::two);
  if (!attention || !std::isfinite(attention->value)) return std::nullopt;
  if (map == MapName::block && layer.norm == NormPlace::none &&
      layer.mlp.gate.size() > 0)
    return std::nullopt;
  const BlockParts parts = parts_everywhere(layer, map, attention->value);
  return named_layer_bound(
      map, *attention, parts, layer_bound(parts, map, layer),
      layer.attention_norm_place() == NormPlace::pre ? InputSet::everywhere()
                                                     : attention->scope);
}

}  // namespace lipscope
