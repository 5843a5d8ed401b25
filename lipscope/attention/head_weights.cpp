#include "lipscope/attention/head_weights.h"

#include <numeric>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

Vector segment_or_zero(const Vector& bias, Index begin, Index size) {
  return bias.size() == 0 ? Vector(Vector::Zero(size))
                          : Vector(bias.segment(begin, size));
}

}  // namespace

HeadWeights head(const AttentionWeights& w, Index h) {
  const Index k = w.query_width(), width = w.value_width();
  const bool tied = w.key.size() == 0;
  HeadWeights out;
  out.query = w.query.middleCols(h * k, k);
  const Index g = w.key_head(h);  // the key and value head that it shares
  out.key = tied ? out.query : Matrix(w.key.middleCols(g * k, k));
  out.value = w.value.middleCols(g * width, width);
  if (w.output.size() > 0) out.output = w.output.middleRows(h * width, width);
  out.query_bias = segment_or_zero(w.query_bias, h * k, k);
  out.key_bias = segment_or_zero(w.key_bias, g * k, k);
  out.value_bias = segment_or_zero(w.value_bias, g * width, width);
  return out;
}

std::vector<Index> chosen_heads(const AttentionWeights& weights,
                                const std::vector<Index>& heads) {
  if (heads.empty()) {
    std::vector<Index> all(weights.heads);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
  }
  std::vector<bool> taken(weights.heads, false);
  for (const Index h : heads) {
    require(h >= 0 && h < weights.heads,
            "attention: head {} of a layer with {} heads", h, weights.heads);
    require(!taken[h], "attention: head {} is chosen twice", h);
    taken[h] = true;
  }
  return heads;
}

}  // namespace lipscope
