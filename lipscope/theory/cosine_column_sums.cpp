#include "lipscope/theory/cosine_column_sums.h"

#include <cmath>

#include "lipscope/theory/column_sums.h"

namespace lipscope {

const Statement cosine_column_sums_statement{
    .name = "cosine_column_sums",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: column sums of P and unit variances, proof in "
        "theory/cosine_column_sums.h"};

Magnitude cosine_column_sums(const CosineNorms& c, Index n, const Mask& mask) {
  const Magnitude slope = well_above(c.nu / std::sqrt(c.epsilon));
  const Magnitude mixed = Magnitude(c.tau) * c.key + c.value;
  return slope * (Magnitude(c.tau) * c.query +
                  root(largest_column_sum(c.tau, n, mask)) * mixed);
}

}  // namespace lipscope
