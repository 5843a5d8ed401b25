#include "lipscope/theory/composition.h"

#include <stdexcept>

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

}  // namespace lipscope
