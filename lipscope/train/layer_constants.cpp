#include "lipscope/train/layer_constants.h"

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/position_heads_bound.h"
#include "lipscope/train/model_stack.h"

namespace lipscope {
namespace {

Magnitude square(Magnitude m) { return m * m; }

// The smallest bound on what mixes in a layer, 2-norm. Position heads and the
// others write different coordinates: squares of their constants add up.
std::optional<Bound> bound_above(const MixingLayer<float>& layer,
                                 const VectorOf<float>& weights, Index n,
                                 double radius) {
  std::optional<Bound> best;
  if (layer.attention() != nullptr) {
    const AttentionShape& shape = layer.attention()->shape();
    best = best_bound(
        bounds(layer.exported(weights),
               {.kind = shape.kind,
                .mask = Mask::causal,
                .n = n,
                .radius = radius,
                .rope = shape.rotary,
                .relative_bias = layer.exported_relative_bias(weights)}),
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
  if (model.mixing().empty()) return {};  // an LSTM
  model.forward(weights, characters, {.length = n, .threads = options.threads});
  const Stack stack = stack_of(model, weights);
  std::vector<LayerConstant> found;
  for (const MixingLayer<float>* layer : model.mixing()) {
    const Matrix x = layer->input().cast<double>();
    LayerConstant c{.layer = static_cast<Index>(found.size()),
                    .n = n,
                    .radius = longest_row(x)};
    const LayerWeights& own = stack.layers[found.size()];
    const MapPtr<float> search =
        layer_map<float>(own, MapName::attn, {.threads = options.threads});
    const MapPtr<double> witness =
        layer_map<double>(own, MapName::attn, {.threads = options.threads});
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
