// One layer at one input: its constant there from both sides, and what is
// proved over all inputs whose tokens are no longer.

#include <fmt/core.h>
#include <lipscope/lipscope.h>

#include "lipscope/core/rng.h"

using namespace lipscope;

int main() {
  const Rng rng(0);
  AttentionWeights weights;
  weights.heads = 2;
  weights.query = 0.3 * gaussian(16, 16, rng.split(0));
  weights.key = 0.3 * gaussian(16, 16, rng.split(1));
  weights.value = 0.3 * gaussian(16, 16, rng.split(2));
  weights.output = 0.3 * gaussian(16, 16, rng.split(3));
  const Matrix x = gaussian(8, 16, rng.split(4));

  const MultiHeadAttention<float> search(weights, {});
  const MultiHeadAttention<double> witness(weights, {});
  const Measurement m = measure_norm(search, witness, x);
  fmt::print("at this input:  {:.6g} <= |J| <= {:.6g}\n", m.lower,
             m.upper.value_or(m.upper_whp.value_or(INFINITY)));

  const double radius = x.rowwise().norm().maxCoeff();
  bool holds = true;
  for (const Bound& b : bounds(weights, {.n = x.rows(), .radius = radius})) {
    fmt::print("over the ball of radius {:.4g}, {}-norm: at most {:.6g} ({})\n",
               radius, name_of(b.norm), b.value, b.name);
    if (b.norm == Norm::two) holds = holds && m.lower <= b.value;
  }
  return holds ? 0 : 1;
}
