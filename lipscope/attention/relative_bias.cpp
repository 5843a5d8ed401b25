#include "lipscope/attention/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {

void require_addable(const RelativeBias& bias, const AttentionWeights& weights,
                     Kind kind, const Mask& mask) {
  require(kind_of(kind).shares(),
          "attention: relative positions are added to the scores of a "
          "softmax, which {} attention is not",
          name_of(kind));
  require(bias.table.cols() == weights.heads,
          "attention: relative positions of {} heads for {}", bias.table.cols(),
          weights.heads);
  require(
      bias.table.rows() >= (bias.looks_back ? 1 : 4) && bias.table.allFinite(),
      "attention: relative positions in {} buckets, all of which must be "
      "finite",
      bias.table.rows());
  require(!bias.looks_back || mask.hides_later,
          "attention: relative positions of tokens behind under the mask "
          "\"{}\", which shows those ahead",
          name_of(mask));
}

Index relative_bucket(const RelativeBias& bias, Index distance) {
  if (bias.looks_back) {
    require(distance <= 0, "attention: no relative position of a token ahead");
    return std::min(-distance, bias.table.rows() - 1);
  }
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
  Vector scores = Vector::Zero(2 * n - 1);
  scores.head(n) = scores_behind(bias, h, n).reverse();
  if (bias.looks_back) return scores;
  for (Index ahead = 1; ahead < n; ++ahead)
    scores[n - 1 + ahead] = bias.table(relative_bucket(bias, ahead), h);
  return scores;
}

Vector scores_behind(const RelativeBias& bias, Index h, Index n) {
  Vector scores(n);
  for (Index t = 0; t < n; ++t)
    scores[t] = bias.table(relative_bucket(bias, -t), h);
  return scores;
}

}  // namespace lipscope
