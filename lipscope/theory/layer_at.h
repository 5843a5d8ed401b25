#pragma once

#include <vector>

#include "lipscope/attention/multi_head.h"

namespace lipscope {

/// The chosen heads of a dot-product layer side by side, and what its local
/// certificates take of the weights alone: made once, used at many inputs.
struct LayerParts {
  Index heads = 0, k = 0, w = 0;
  bool projected = false;
  Mask mask = Mask::none;
  int threads = 0;
  Matrix query, key, value;  ///< [d×H·k], [d×H·k], [d×H·w]; query with 1/√k
  Matrix output;             ///< [H·w×e]; empty unless projected
  Vector query_bias, key_bias;  ///< of the chosen heads; query with 1/√k
  bool biased = false;          ///< whether a query bias reaches the keys
};

LayerParts layer_parts(const AttentionWeights& weights,
                       const AttentionOptions& options);

/// The layer at one sequence. Values carry no bias: it moves all alike.
struct LayerAt {
  Matrix x;               ///< [n×d]
  Matrix q, k, v;         ///< [n×H·k], [n×H·k], [n×H·w]
  std::vector<Matrix> p;  ///< for each head, [n×n]
  /// What rounding in q, k, v and p may do to a norm made of them: a relative
  /// allowance 1e-9 + 64 u (d + the largest logit), u = 2⁻⁵³.
  double allowance = 0.0;
};

LayerAt layer_at(const LayerParts& weights, const Matrix& x);

}  // namespace lipscope
