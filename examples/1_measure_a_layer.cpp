// Measure how strongly one attention layer can amplify a change of its input.

#include <fmt/core.h>

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/estimate.h"

using namespace lipscope;

int main() {
  // a layer of width 64 with 4 heads, weights as GPT-2 draws them
  const Rng rng(0);
  AttentionWeights weights;
  weights.heads = 4;
  weights.query = 0.02 * gaussian(64, 64, rng.split(0));
  weights.key = 0.02 * gaussian(64, 64, rng.split(1));
  weights.value = 0.02 * gaussian(64, 64, rng.split(2));
  weights.output = 0.02 * gaussian(64, 64, rng.split(3));

  // the same map twice: in f32 to search, in f64 to testify
  const AttentionOptions options{.mask = Mask::causal};
  const MultiHeadAttention<float> search(weights, options);
  const MultiHeadAttention<double> witness(weights, options);

  const Matrix x = gaussian(32, 64, rng.split(4));
  const Measurement m = measure_norm(search, witness, x, {.enclose = 1.05});

  fmt::print(
      "at this input a small change in the direction found grows "
      "{:.6g}-fold, so the constant is at least that\n",
      m.lower);
  fmt::print("and no direction exceeds {:.6g}, but for a chance of {:.0e}\n",
             *m.upper_whp, m.delta);
  fmt::print("({}, {} steps, residual {:.1e})\n", name_of(m.lower_by), m.steps,
             m.residual);

  // the witness can be checked by anyone: ‖J v‖ for the unit direction v
  const Vector image = witness.linearize(x)->apply(m.direction);
  return m.converged && std::abs(image.norm() - m.lower) < 1e-12 * m.lower ? 0
                                                                           : 1;
}
