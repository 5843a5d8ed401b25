#include "lipscope/spectral/enclosure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lipscope/core/errors.h"

// With σ̂ the largest ‖A v‖ over the unit v of the Krylov space of AᵀA and v₁
// after m steps, let λ₁ = ‖A‖₂², z a unit vector with AᵀA z = λ₁ z, and
// c = |⟨z, v₁⟩|. Suppose σ̂² < (1−ε)λ₁ after m steps, and scale λ₁ to 1. Then
// every p of degree ≤ m−1 has v₁ᵀ p(AᵀA) (AᵀA − (1−ε)) p(AᵀA) v₁ < 0; dropping
// the other positive terms and writing x_i for the coefficients of v₁,
//
//   ε p(1)² c² < Σ_{λ_i < 1−ε} x_i² p(λ_i)² (1−ε−λ_i).
//
// Take p((1−ε)s²) = U_{2m−2}(s), Chebyshev's polynomial of the second kind.
// With s = cos θ, p² (1−ε−λ) = (1−ε) sin²((2m−1)θ) ≤ 1−ε, and with
// cosh φ = 1/√(1−ε), i.e. tanh φ = √ε, p(1) = sinh((2m−1)φ)/sinh φ. Hence
// c² sinh²((2m−1)φ) < 1 − c², or c < 1/cosh((2m−1)φ).
//
// So where c ≥ c₀ and cosh((2m−1)φ) = 1/c₀, ‖A‖₂ ≤ σ̂/√(1−ε) = σ̂ cosh φ. (As
// cosh φ ≤ 1/√(1−φ²), this is never above the form with √ε = φ.)
//
// The start. ⟨z, g + h⟩ is normal with variance 1, and its density is at most
// 1/√(2π) wherever its mean ⟨z, h⟩ lies, so that P[|⟨z, g + h⟩| < t] ≤ √(2/π)
// t. With t = 0.97 δ √(π/2) that is 0.97 δ, and outside of this event, which
// does not speak of m or of ‖g + h‖, c = |⟨z, g + h⟩|/‖g + h‖ ≥ t/‖g + h‖ = c₀.
// The remaining 0.03 δ is for further starts (golub_kahan.cpp).
//
// h may depend on A, but not on g. z is that of one A: where several operators
// are started from one g, each statement fails with probability less than δ.
//
// Several starts in one block are no better. Of b independent ones the best has
// less than t of z with probability of order (√N t)^b, so that ln(1/c₀) is
// about ln √N + ln(1/δ)/b, but the same number of products makes m/b block
// steps: (b ln √N + ln(1/δ))/2m stands in place of (ln √N + ln(1/δ))/2m.

namespace lipscope {

double start_overlap(double length, double delta) {
  require(length > 0.0 && std::isfinite(length),
          "start_overlap: a start of length {}", length);
  require(delta > 0.0 && delta < 1.0,
          "start_overlap: delta {} is not between 0 and 1", delta);
  return std::min(1.0, 0.97 * delta * std::sqrt(std::numbers::pi / 2) / length);
}

double enclosure_factor(double overlap, int steps) {
  require(overlap > 0.0 && overlap <= 1.0 && steps > 0,
          "enclosure_factor: an overlap of {}, {} steps", overlap, steps);
  return std::cosh(std::acosh(1.0 / overlap) / (2.0 * steps - 1.0));
}

int steps_to_enclose(double overlap, double factor) {
  require(factor > 1.0, "steps_to_enclose: a factor of {}, not above 1",
          factor);
  // the factor falls with every step: halve the interval (low, high]
  int low = 0, high = std::numeric_limits<int>::max();
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (enclosure_factor(overlap, middle) <= factor ? high : low) = middle;
  }
  return high;
}

}  // namespace lipscope
