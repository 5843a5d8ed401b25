#include "lipscope/audit/maps.h"

namespace lipscope::audit {

Maps::Maps(const Subject& subject, const Selection& selection, int threads,
           std::uint64_t memory)
    : subject_(subject),
      selection_(selection),
      threads_(threads),
      memory_(memory) {}

Maps::Made& Maps::made(const Part& part) {
  const auto found = made_.find(part);
  if (found != made_.end()) return found->second;
  if (!keeps_layers() && !made_.empty() &&
      made_.begin()->first.layer != part.layer)
    made_.clear();
  return made_[part];
}

const LayerWeights& Maps::weights(std::optional<Index> layer) {
  std::optional<LayerWeights>& weights = made({.layer = layer}).weights;
  if (!weights)
    weights = subject_.layer
                  ? LayerWeights{.attention = subject_.layer->weights}
                  : load_layer(*subject_.model, layer.value(), selection_.map);
  return *weights;
}

template <class Real>
MapPtr<Real> Maps::make(const Part& part, Index sequences) {
  ModelMapOptions options = map_options(selection_, part.head);
  options.sequences = sequences;
  options.threads = threads_;
  options.memory = memory_;
  if (subject_.model && !part.layer)
    return model_map<Real>(*subject_.model, options);
  return layer_map<Real>(weights(part.layer), selection_.map, options);
}

void Maps::prepare(const Part& part, Index sequences, bool search) {
  std::map<Index, Pair>& pairs = made(part).pairs;
  if (!keeps_layers() && !pairs.contains(sequences)) pairs.clear();
  Pair& pair = pairs[sequences];
  if (!pair.witness) pair.witness = make<double>(part, sequences);
  if (search && !pair.search) pair.search = make<float>(part, sequences);
}

void Maps::prepare_certificates(const Part& part) {
  std::optional<LayerCertificates>& certificates = made(part).certificates;
  if (certificates) return;
  ModelMapOptions options = map_options(selection_, part.head);
  options.threads = threads_;
  certificates.emplace(weights(part.layer), selection_.map, options);
}

const Maps::Pair& Maps::pair(const Part& part, Index sequences) const {
  return made_.at(part).pairs.at(sequences);
}

const LayerCertificates& Maps::certificates(const Part& part) const {
  return made_.at(part).certificates.value();
}

template MapPtr<float> Maps::make(const Part&, Index);
template MapPtr<double> Maps::make(const Part&, Index);

}  // namespace lipscope::audit
