#include "lipscope/theory/composition.h"

#include <stdexcept>

#include "lipscope/core/errors.h"

namespace lipscope {

Magnitude residual_bound(Magnitude inner) { return Magnitude(1.0) + inner; }

Magnitude pre_norm_block(const BlockParts& p) {
  return residual_bound(p.attention * p.attention_norm) *
         residual_bound(p.mlp * p.mlp_norm);
}

Magnitude post_norm_block(const BlockParts& p) {
  return p.attention_norm * residual_bound(p.attention) * p.mlp_norm *
         residual_bound(p.mlp);
}

Magnitude parallel_block(const BlockParts& p) {
  return residual_bound(p.attention * p.attention_norm) + p.mlp * p.mlp_norm;
}

Magnitude layer_bound(const BlockParts& parts, MapName map,
                      const LayerWeights& layer) {
  if (layer.parallel && map == MapName::block) return parallel_block(parts);
  return layer_bound(parts, map, layer.pre_norm());
}

Magnitude layer_bound(const BlockParts& parts, MapName map, bool pre_norm) {
  switch (map) {
    case MapName::core:
    case MapName::attn:
      return parts.attention;
    case MapName::residual:
      return pre_norm ? residual_bound(parts.attention * parts.attention_norm)
                      : parts.attention_norm * residual_bound(parts.attention);
    case MapName::block:
      return pre_norm ? pre_norm_block(parts) : post_norm_block(parts);
    case MapName::model:
      break;
  }
  throw std::invalid_argument("layer_bound: a model is no map of one layer");
}

LayerBound named_layer_bound(MapName map, const Bound& attention,
                             const BlockParts& parts, Magnitude value,
                             const InputSet& scope) {
  const Bound bound = make_bound(
      {.name = name_of(map) + "(" + attention.name + ")",
       .norm = Norm::two,
       .mask = attention.mask,
       .citation = "of its parts, theory/composition.h; " + attention.citation},
      value, scope);
  return {bound, attention, parts, value};
}

ModelBound model_bound(const std::vector<LayerBound>& blocks,
                       std::optional<Magnitude> final_norm, double allowance) {
  require(!blocks.empty(), "model_bound: no blocks");
  Magnitude product = 1.0;
  const LayerBound* cited = &blocks.front();
  std::vector<Magnitude> layers;
  for (const LayerBound& block : blocks) {
    product = product * block.value;
    layers.push_back(block.value);
    if (cited->attention.log10 < block.attention.log10) cited = &block;
  }
  if (final_norm) product = product * *final_norm;
  if (allowance > 0.0) product = product * (1.0 + allowance);
  return {make_bound({.name = "model(" + cited->bound.name + ")",
                      .norm = Norm::two,
                      .mask = cited->bound.mask,
                      .citation = cited->bound.citation},
                     product, cited->bound.scope),
          std::move(layers)};
}

}  // namespace lipscope
