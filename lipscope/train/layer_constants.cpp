#include "lipscope/train/layer_constants.h"

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/operators/compose.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/position_heads_bound.h"

namespace lipscope {
namespace {

Magnitude square(Magnitude m) { return m * m; }

// what mixes in a layer, as a map of one sequence
template <class Real>
MapPtr<Real> mixing_map(const MixingLayer<float>& layer,
                        const VectorOf<float>& weights, int threads) {
  MapPtr<Real> map;
  const MixingShape& shape = layer.shape();
  if (layer.attention() != nullptr) {
    AttentionOptions how{
        .kind = shape.attention.kind, .mask = Mask::causal, .threads = threads};
    if (shape.attention.rotary) how.rope = Rotary{};
    map = std::make_unique<MultiHeadAttention<Real>>(layer.exported(weights),
                                                     std::move(how));
  }
  const auto heads = layer.exported_position_heads(weights);
  if (!heads) return map;
  MapPtr<Real> positions =
      std::make_unique<PositionHeadsMap<Real>>(*heads, 1, threads);
  return map ? sum<Real>(std::move(map), std::move(positions))
             : std::move(positions);
}

// The smallest that is proved of it in the 2-norm. Position heads and the
// others write different coordinates: squares of their constants add up.
std::optional<Bound> bound_above(const MixingLayer<float>& layer,
                                 const VectorOf<float>& weights, Index n,
                                 double radius) {
  std::optional<Bound> best;
  if (layer.attention() != nullptr) {
    const AttentionShape& shape = layer.attention()->shape();
    best = best_bound(bounds(layer.exported(weights), {.kind = shape.kind,
                                                       .mask = Mask::causal,
                                                       .n = n,
                                                       .radius = radius,
                                                       .rope = shape.rotary}),
                      Norm::two);
    if (!best) return best;
  }
  const auto heads = layer.exported_position_heads(weights);
  if (!heads) return best;
  Magnitude squares = square(position_heads_lipschitz(*heads, Norm::two));
  Statement statement{.name = "position_heads", .mask = "causal"};
  if (best) {
    squares = squares + square(magnitude_of(*best));
    statement.name += " and " + best->name;
  }
  return make_bound(statement, root(squares),
                    best ? best->scope : InputSet::everywhere());
}

}  // namespace

std::vector<LayerConstant> layer_constants(LanguageModel<float>& model,
                                           const VectorOf<float>& weights,
                                           std::span<const int> characters,
                                           const MeasureOptions& options) {
  const auto n = static_cast<Index>(characters.size());
  model.forward(weights, characters, {.length = n, .threads = options.threads});
  std::vector<LayerConstant> found;
  for (const MixingLayer<float>* layer : model.mixing()) {
    const Matrix x = layer->input().cast<double>();
    LayerConstant c{.layer = static_cast<Index>(found.size()),
                    .n = n,
                    .radius = longest_row(x)};
    const MapPtr<float> search =
        mixing_map<float>(*layer, weights, options.threads);
    const MapPtr<double> witness =
        mixing_map<double>(*layer, weights, options.threads);
    MeasureOptions with_start = options;
    const bool plain = layer->shape().position_heads == 0;
    if (plain)
      with_start.common_shift = common_shift_of(
          dynamic_cast<const MultiHeadAttention<float>&>(*search));
    c.measured = measure_norm(*search, *witness, x, with_start);
    c.above = bound_above(*layer, weights, n, c.radius);
    found.push_back(std::move(c));
  }
  return found;
}

}  // namespace lipscope
