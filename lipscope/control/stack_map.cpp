#include "lipscope/control/stack_map.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
MapPtr<double> stack_map(const Stack& stack, int threads) {
  require(!stack.layers.empty(), "stack_map: no layers");
  MapPtr<double> all;
  if (stack.last_norm)
    all = std::make_unique<LayerNorm<double>>(*stack.last_norm);
  // from the last layer down, as model_map is made: each is evaluated once
  for (auto layer = stack.layers.rbegin(); layer != stack.layers.rend();
       ++layer) {
    MapPtr<double> block = layer_map<double>(
        *layer, MapName::block,
        {.kind = stack.kind, .mask = Mask::causal, .threads = threads});
    all = all ? compose(std::move(all), std::move(block)) : std::move(block);
  }
  return all;
}

}  // namespace lipscope
