#include "lipscope/control/stack_map.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// x + f(norm x), norm(x + f(x)), or x + f(x) where there is no norm
MapPtr<double> sublayer(MapPtr<double> f, const NormWeights& norm,
                        bool pre_norm) {
  if (norm.gain.size() == 0) return residual(std::move(f));
  MapPtr<double> n = std::make_unique<LayerNorm<double>>(norm);
  return pre_norm ? residual(compose(std::move(f), std::move(n)))
                  : compose(std::move(n), residual(std::move(f)));
}

}  // namespace

MapPtr<double> stack_map(const Stack& stack, int threads) {
  require(!stack.layers.empty(), "stack_map: no layers");
  MapPtr<double> all;
  if (stack.last_norm)
    all = std::make_unique<LayerNorm<double>>(*stack.last_norm);
  // from the last layer down, as model_map is made: each is evaluated once
  for (auto layer = stack.layers.rbegin(); layer != stack.layers.rend();
       ++layer) {
    MapPtr<double> attention = std::make_unique<MultiHeadAttention<double>>(
        layer->attention,
        AttentionOptions{
            .kind = stack.kind, .mask = Mask::causal, .threads = threads});
    MapPtr<double> mlp = std::make_unique<Mlp<double>>(layer->mlp, threads);
    MapPtr<double> block = compose(
        sublayer(std::move(mlp), layer->mlp_norm, layer->pre_norm),
        sublayer(std::move(attention), layer->attention_norm, layer->pre_norm));
    all = all ? compose(std::move(all), std::move(block)) : std::move(block);
  }
  return all;
}

}  // namespace lipscope
