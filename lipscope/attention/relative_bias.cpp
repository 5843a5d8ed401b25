#include "lipscope/attention/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {

void require_addable(const RelativeBias& bias, const AttentionWeights& weights,
                     Kind kind) {
  require(kind_of(kind).shares(),
          "attention: relative positions are added to the scores of a "
          "softmax, which {} attention is not",
          name_of(kind));
  require(bias.table.cols() == weights.heads,
          "attention: relative positions of {} heads for {}", bias.table.cols(),
          weights.heads);
}

Index relative_bucket(const RelativeBias& bias, Index distance) {
  const Index half = bias.table.rows() / 2, exact = half / 2;
  const Index ahead = distance > 0 ? half : 0;
  const Index d = std::abs(distance);
  if (d < exact) return ahead + d;
  // the logarithm and its quotients are rounded to f32, one after the other
  const float far =
      std::log(static_cast<float>(d) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(bias.furthest) /
                                  static_cast<double>(exact))) *
      static_cast<float>(half - exact);
  return ahead + std::min(half - 1, exact + static_cast<Index>(far));
}

Vector relative_scores(const RelativeBias& bias, Index h, Index n) {
  Vector scores(2 * n - 1);
  for (Index i = 0; i < 2 * n - 1; ++i)
    scores[i] = bias.table(relative_bucket(bias, i - (n - 1)), h);
  return scores;
}

}  // namespace lipscope
