#include "lipscope/theory/layer_bounds.h"

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

double largest_entry(const Vector& v) {
  return v.size() == 0 ? 0.0 : v.cwiseAbs().maxCoeff();
}

}  // namespace

std::vector<Bound> attention_bounds(const LayerWeights& layer, bool project,
                                    const ModelMapOptions& o, Index n,
                                    const TokenSet& tokens) {
  const bool rope = layer.rope_theta.has_value();
  const Kind kind = o.kind.value_or(layer.kind);
  if (rope && kind != Kind::dot) return {};
  return bounds(attention_of(layer, kind), {.kind = kind,
                                            .mask = o.mask.value_or(layer.mask),
                                            .heads = o.heads,
                                            .project = project,
                                            .n = n,
                                            .radius = tokens.radius,
                                            .norm = tokens.norm,
                                            .rope = rope,
                                            .cosine = o.cosine});
}

MlpNorms mlp_norms(const MlpWeights& w) {
  require_sound(w);
  return {.up = weight_norm_above(w.up),
          .gate = weight_norm_above(w.gate),
          .down = weight_norm_above(w.down),
          .up_column = longest_row(w.up.transpose()),
          .gate_column = longest_row(w.gate.transpose()),
          .up_bias = largest_entry(w.up_bias),
          .gate_bias = largest_entry(w.gate_bias),
          .gated = w.gate.size() > 0,
          .activation = w.activation};
}

Magnitude mlp_above(const MlpNorms& m, double radius) {
  if (!m.gated) return mlp_bound(m.up, m.down, m.activation);
  const Magnitude R = radius;
  const Magnitude u = R * m.up_column + m.up_bias;
  const Magnitude g = R * m.gate_column + m.gate_bias;
  return (Magnitude(m.gate) * activation_slope(m.activation) * u +
          Magnitude(m.up) * g) *
         m.down;
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

BlockParts parts_everywhere(const LayerWeights& layer, MapName map,
                            Magnitude attention) {
  BlockParts parts{attention, 1.0, 1.0, 1.0};
  if (map == MapName::core || map == MapName::attn) return parts;
  const bool norms = layer.norm != NormPlace::none;
  if (norms) parts.attention_norm = norm_layer_everywhere(layer.attention_norm);
  if (map == MapName::residual) return parts;
  const MlpNorms mlp = mlp_norms(layer.mlp);
  if (!norms) {
    require(!mlp.gated, "parts: a gated MLP reads tokens of any length");
    parts.mlp = mlp_above(mlp, 0.0);
    return parts;
  }
  const NormWeights& ahead =
      layer.pre_norm() ? layer.mlp_norm : layer.attention_norm;
  parts.mlp = mlp_above(mlp, norm_layer_radius(ahead));
  parts.mlp_norm = norm_layer_everywhere(layer.mlp_norm);
  return parts;
}

}  // namespace lipscope
