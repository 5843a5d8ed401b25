#pragma once

#include <vector>

#include "lipscope/attention/weights.h"

namespace lipscope {

/// The parameters of one head, cut out of its layer.
struct HeadWeights {
  Matrix query, key;                        ///< [d×k]
  Matrix value;                             ///< [d×w]
  Matrix output;                            ///< [w×e], or empty
  Vector query_bias, key_bias, value_bias;  ///< zero where the layer has none
};

/// Head h. Tied L2 attention has its queries for keys.
HeadWeights head(const AttentionWeights& weights, Index h);

/// The chosen heads, or all if none are named; throws unless each is there
/// once.
std::vector<Index> chosen_heads(const AttentionWeights& weights,
                                const std::vector<Index>& heads);

}  // namespace lipscope
