#pragma once

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"

/// The layer that every benchmark measures: GPT-2's size and initialisation.
namespace lipscope::bench {

inline constexpr Index d = 768, heads = 12;

inline AttentionWeights layer() {
  AttentionWeights w;
  w.heads = heads;
  w.query = 0.02 * gaussian(d, d, Rng(1));
  w.key = 0.02 * gaussian(d, d, Rng(2));
  w.value = 0.02 * gaussian(d, d, Rng(3));
  w.output = 0.02 * gaussian(d, d, Rng(4));
  return w;
}

}  // namespace lipscope::bench
