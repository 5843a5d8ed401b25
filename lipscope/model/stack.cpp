#include "lipscope/model/stack.h"

#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"

namespace lipscope {

Stack load_stack(const Model& model) {
  LogitHead head = load_head(model);
  Stack stack{.context = model.config.positions,
              .head = std::move(head.weight),
              .head_bias = std::move(head.bias)};
  for (Index l = 0; l < model.config.layers; ++l)
    stack.layers.push_back(load_layer(model, l));
  stack.last_norm = load_final_norm(model);
  return stack;
}

MapPtr<double> stack_map(const Stack& stack, int threads) {
  require(!stack.layers.empty(), "stack_map: no layers");
  MapPtr<double> all;
  if (stack.last_norm)
    all = std::make_unique<LayerNorm<double>>(*stack.last_norm);
  // from the last layer down, as model_map is made: each is evaluated once
  for (auto layer = stack.layers.rbegin(); layer != stack.layers.rend();
       ++layer) {
    MapPtr<double> block =
        layer_map<double>(*layer, MapName::block, {.threads = threads});
    all = all ? compose(std::move(all), std::move(block)) : std::move(block);
  }
  return all;
}

}  // namespace lipscope
