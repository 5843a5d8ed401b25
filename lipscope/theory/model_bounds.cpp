#include "lipscope/theory/model_bounds.h"

#include <utility>
#include <vector>

#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/unbounded.h"

namespace lipscope {

std::optional<ModelBound> model_bound_everywhere(const Model& model,
                                                 const LayerSource& layers,
                                                 const ModelMapOptions& options,
                                                 Index n,
                                                 const TokenSet& entering) {
  std::vector<LayerBound> blocks;
  for (Index l = 0; l < model.config.layers; ++l) {
    const LayerWeights& layer = layers(l);
    TokenSet tokens = entering;
    if (std::optional<NormWeights> norm = load_input_norm(model, l))
      tokens = {norm_layer_radius(*norm), std::move(norm)};
    else if (unbounded(options.kind.value_or(layer.kind),
                       options.mask.over(layer.mask)) &&
             (l > 0 || !(entering.radius > 0.0)))
      return std::nullopt;
    std::optional<LayerBound> block =
        layer_bound_everywhere(layer, MapName::block, options, n, tokens);
    if (!block) return std::nullopt;
    blocks.push_back(std::move(*block));
  }
  std::optional<Magnitude> last;
  if (const std::optional<NormWeights> norm = load_final_norm(model))
    last = norm_layer_everywhere(*norm);
  return model_bound(blocks, last);
}

}  // namespace lipscope
