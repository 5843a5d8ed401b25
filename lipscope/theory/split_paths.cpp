#include "lipscope/theory/split_paths.h"

#include "lipscope/theory/token_slopes.h"

namespace lipscope {

const Statement split_paths_statement{
    .name = "split_paths",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: value path by its leading direction, key and query paths "
        "by the norms of their parts between tokens, proof in "
        "theory/split_paths.h"};

double score_paths_above(const LayerParts& l, const SplitWeights& split,
                         const LayerAt& at) {
  Matrix norms = key_path_norms_above(l, split, at, centres(l, at));
  norms.diagonal() += query_path_norms_above(l, split, at);
  return nonnegative_norm_above(norms);
}

Magnitude split_paths(const LayerParts& l, const SplitWeights& split,
                      const LayerAt& at) {
  return Magnitude(value_path_above(l, split, at)) +
         score_paths_above(l, split, at) + slope_rounding(l, at);
}

}  // namespace lipscope
