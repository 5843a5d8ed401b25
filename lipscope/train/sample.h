#pragma once

#include <string>
#include <vector>

#include "lipscope/train/language_model.h"

namespace lipscope {

struct SampleOptions {
  Index length = 500;        ///< characters to draw
  double temperature = 1.0;  ///< of the softmax; 0: the likeliest each time
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all cores
};

/// Characters that follow the prompt, one by one: each is drawn from what the
/// model says of the last `context` characters. The prompt must not be empty.
std::vector<int> sample(LanguageModel<float>& model,
                        const VectorOf<float>& weights,
                        const std::vector<int>& prompt,
                        const SampleOptions& options = {});

}  // namespace lipscope
