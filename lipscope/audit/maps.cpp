#include "lipscope/audit/maps.h"

namespace lipscope::audit {

Maps::Maps(const Subject& subject, const Selection& selection, int threads,
           std::uint64_t memory)
    : subject_(subject),
      selection_(selection),
      threads_(threads),
      memory_(memory) {
  keep_ = true;
  if (!subject.model) return;
  const ModelConfig& c = subject.model->config;
  const double numbers =
      4.0 * static_cast<double>(c.width) * static_cast<double>(c.width) +
      3.0 * static_cast<double>(c.width) * static_cast<double>(c.mlp_width);
  keep_ = numbers * static_cast<double>(c.layers) * sizeof(double) < 1e9;
}

const LayerWeights& Maps::weights(std::optional<Index> layer) {
  const Index l = layer.value_or(0);
  if (!keep_ && !layers_.contains(l)) layers_.clear();
  const auto at = layers_.find(l);
  if (at != layers_.end()) return at->second;
  return layers_
      .emplace(l, subject_.layer
                      ? LayerWeights{.attention = subject_.layer->weights}
                      : load_layer(*subject_.model, l, selection_.map))
      .first->second;
}

template <class Real>
MapPtr<Real> Maps::make(std::optional<Index> layer, std::optional<Index> head,
                        Index sequences) {
  ModelMapOptions options = map_options(selection_, head);
  options.sequences = sequences;
  options.threads = threads_;
  options.memory = memory_;
  if (subject_.model && !layer)
    return model_map<Real>(*subject_.model, options);
  return layer_map<Real>(weights(layer), selection_.map, options);
}

template MapPtr<float> Maps::make(std::optional<Index>, std::optional<Index>,
                                  Index);
template MapPtr<double> Maps::make(std::optional<Index>, std::optional<Index>,
                                   Index);

}  // namespace lipscope::audit
