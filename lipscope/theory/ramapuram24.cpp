#include "lipscope/theory/ramapuram24.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

const Statement ramapuram24_ball_statement{
    .name = "ramapuram24_ball",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "Ramapuram24, sigmoid attention, re-derived over a ball with "
        "biases, proof in theory/ramapuram24.h"};

Magnitude ramapuram24_ball(const SigmoidNorms& s, double R, Index n,
                           const Mask& mask) {
  const double tokens = static_cast<double>(n);
  const Magnitude bias = Magnitude(s.query_bias) + s.key_bias;
  const double logit = (Magnitude(s.score) * R * R + bias * R + s.both).value();
  // σ grows, and σ' = σ(1 − σ) is largest at 0, which is reached if it can be.
  // 2⁻⁴⁰ is room for exp, and for the rounding of log n where n is large
  const double top = logit - std::log(tokens);
  const double sigma = 1.0 / (1.0 + std::exp(-top));
  const double slope = top >= 0.0 ? 0.25 : sigma * (1.0 - sigma);
  const auto up = [](double x) { return std::min(1.0, x * (1.0 + 0x1p-40)); };
  const Index looked_at = std::max(most_visible(mask, n), most_seeing(mask, n));
  return Magnitude(static_cast<double>(looked_at)) *
         (Magnitude(s.value) * up(sigma) +
          (Magnitude(s.score) * 2.0 * R + bias) *
              (Magnitude(s.value) * R + s.value_bias) * up(slope));
}

}  // namespace lipscope
