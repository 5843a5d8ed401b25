#include "lipscope/theory/layer_heads.h"

#include <utility>

#include "lipscope/theory/norms.h"

namespace lipscope {

LayerHeads layer_heads(const AttentionWeights& weights,
                       const std::vector<Index>& heads, bool project) {
  LayerHeads layer;
  layer.projected = project && weights.output.size() > 0;
  const std::vector<Index> chosen = chosen_heads(weights, heads);
  const Index w = weights.value_width();
  Matrix output(layer.projected ? static_cast<Index>(chosen.size()) * w : 0,
                weights.output.cols());
  for (const Index h : chosen) {
    HeadWeights one = head(weights, h);
    if (layer.projected)
      output.middleRows(static_cast<Index>(layer.heads.size()) * w, w) =
          one.output;
    else
      one.output = Matrix();
    layer.heads.push_back(std::move(one));
  }
  if (layer.projected) {
    layer.output = weight_norm_above(output);
    layer.output_inf = row_sum_above(output.transpose());
  }
  return layer;
}

Magnitude together(const LayerHeads& layer, const HeadBounds& heads) {
  Magnitude squares = 0.0;
  for (const Magnitude& m : heads.alone) squares = squares + m * m;
  // the root of one square is itself
  const Magnitude side_by_side =
      heads.alone.size() == 1 ? heads.alone[0] : root(squares);
  if (!layer.projected) return side_by_side;
  Magnitude sum = 0.0;
  for (const Magnitude& m : heads.projected) sum = sum + m;
  return smaller(sum, side_by_side * layer.output);
}

}  // namespace lipscope
