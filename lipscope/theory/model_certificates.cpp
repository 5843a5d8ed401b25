#include "lipscope/theory/model_certificates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/norm_layer_bound.h"

namespace lipscope {

std::vector<std::optional<ModelBound>> model_certificates(
    const Model& model, const ModelMapOptions& options,
    std::optional<Certificate> which, const Matrix& x, Index sequences) {
  require(sequences >= 1 && x.rows() % sequences == 0,
          "model certificates: {} sequences in {} rows", sequences, x.rows());
  const Index n = x.rows() / sequences;
  ModelMapOptions alone = options, stacked = options;
  alone.sequences = 1;
  stacked.sequences = sequences;

  std::vector<std::vector<LayerBound>> blocks(sequences);
  std::vector<char> proved(sequences, 1);
  Matrix states = x;
  for (Index l = 0; l < model.config.layers; ++l) {
    const LayerWeights layer = load_layer(model, l);
    const LayerCertificates made(layer, MapName::block, alone);
    if (which)
      if (const std::optional<std::string> large = made.too_large(*which, n))
        throw InputError(fmt::format("{} of the attention of layer {} needs {}",
                                     name_of(*which), l, *large));
    parallel_for(sequences, options.threads, [&](Index i) {
      std::optional<LayerBound> block = made.composed_at(
          states.middleRows(i * n, n), which ? which : made.usual(n));
      if (block && std::isfinite(block->bound.value))
        blocks[i].push_back(std::move(*block));
      else
        proved[i] = 0;
    });
    if (std::count(proved.begin(), proved.end(), 1) == 0)
      return std::vector<std::optional<ModelBound>>(sequences);
    states = (*layer_map<double>(layer, MapName::block, stacked))(states);
  }
  const std::optional<NormWeights> norm = load_final_norm(model);
  std::vector<std::optional<ModelBound>> found(sequences);
  for (Index i = 0; i < sequences; ++i) {
    if (!proved[i]) continue;
    std::optional<Magnitude> last;
    if (norm) last = norm_layer_at(*norm, states.middleRows(i * n, n));
    // what rounding in the states may do to the norms made of them
    found[i] = model_bound(blocks[i], last, 1e-9);
  }
  return found;
}

}  // namespace lipscope
