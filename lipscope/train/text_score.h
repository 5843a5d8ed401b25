#pragma once

namespace lipscope {

/// How well the tokens of a text are predicted.
struct TextScore {
  double nll = 0.0;  ///< mean of −log p(token | those before it in its window)
  double accuracy = 0.0;  ///< the share of tokens that were the likeliest
};

}  // namespace lipscope
