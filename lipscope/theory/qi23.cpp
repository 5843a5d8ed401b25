#include "lipscope/theory/qi23.h"

#include <cmath>

namespace lipscope {

const Statement qi23_cosine_statement{
    .name = "qi23_cosine",
    .norm = Norm::two,
    .mask = "any",
    .citation = "Qi23, scaled cosine similarity attention; softmax by Nair25"};

Magnitude qi23_cosine(const CosineNorms& c, Index n) {
  const double tokens = static_cast<double>(n);
  const Magnitude slope = well_above(c.nu / std::sqrt(c.epsilon));
  const Magnitude tau = c.tau;
  return slope * tokens *
         (tau * tokens * c.key + tau * c.query + Magnitude(2.0) * c.value);
}

}  // namespace lipscope
