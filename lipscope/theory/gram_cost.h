#pragma once

#include <string>

#include "lipscope/theory/layer_at.h"

namespace lipscope {

/// What a proof by the Gram matrix of J takes at n tokens.
struct GramCost {
  Index tokens = 0;
  double rows = 0.0;  ///< of the matrix
  double flops = 0.0, bytes = 0.0;
  double most_flops = 0.0, most_bytes = 2e9;  ///< its limits

  bool fits() const { return flops <= most_flops && bytes <= most_bytes; }
  /// "a matrix of 24576 rows at n = 64: 4.9 GB and 4.9e+12 operations, of at
  /// most 2 GB and 1e+12"
  std::string text() const;
};

/// Of exact_norm, which keeps the matrix and factors it: up to 10¹² operations,
/// some twenty seconds on two cores. 12,288 rows are: 32 tokens of a layer of
/// width 384, 16 of 768, 192 of a head of width 64.
GramCost exact_cost(const LayerParts& layer, Index n);

/// Of leading_apart, which makes the matrix part by part and keeps none of
/// them: up to 2·10¹³ operations, some minutes. 256 tokens of a layer of width
/// 384, 128 of 768.
GramCost leading_cost(const LayerParts& layer, Index n);

}  // namespace lipscope
