#include "lipscope/train/layer_constants.h"

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/norms.h"

namespace lipscope {

std::vector<LayerConstant> layer_constants(LanguageModel<float>& model,
                                           const VectorOf<float>& weights,
                                           std::span<const int> characters,
                                           const MeasureOptions& options) {
  const auto n = static_cast<Index>(characters.size());
  model.forward(weights, characters, {.length = n, .threads = options.threads});
  std::vector<LayerConstant> found;
  for (const AttentionLayer<float>* layer : model.attention()) {
    const Kind kind = layer->shape().kind;
    const AttentionWeights exported = layer->exported(weights);
    const AttentionOptions how{
        .kind = kind, .mask = Mask::causal, .threads = options.threads};
    const Matrix x = layer->input().cast<double>();
    LayerConstant c{.layer = static_cast<Index>(found.size()),
                    .n = n,
                    .radius = longest_row(x)};
    const MultiHeadAttention<float> search(exported, how);
    MeasureOptions with_start = options;
    with_start.common_shift = common_shift_of(search);
    c.measured = measure_norm(search, MultiHeadAttention<double>(exported, how),
                              x, with_start);
    c.above = best_bound(
        bounds(
            exported,
            {.kind = kind, .mask = Mask::causal, .n = n, .radius = c.radius}),
        Norm::two);
    found.push_back(std::move(c));
  }
  return found;
}

}  // namespace lipscope
