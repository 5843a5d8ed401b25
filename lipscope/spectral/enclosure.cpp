#include "lipscope/spectral/enclosure.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
// c² sinh²((2m−1)φ) < 1 − c², or c < 1/cosh((2m−1)φ) < 2 e^{−(2m−1)√ε}.
//
// For v₁ uniform on the sphere of R^N the density of ⟨z, v₁⟩ is at most
// √(N/2π) around 0, so P[c < t] ≤ 0.798 √N t. The failure therefore lies in
// the event c < 2δ/(1.648 √N), the same for all m, of probability < 0.97 δ.

namespace lipscope {

double enclosure_factor(Index unknowns, int steps, double delta) {
  require(unknowns > 0 && steps > 0, "enclosure_factor: {} unknowns, {} steps",
          unknowns, steps);
  require(delta > 0.0 && delta < 1.0,
          "enclosure_factor: delta {} is not between 0 and 1", delta);
  const double root =
      std::log(1.648 * std::sqrt(static_cast<double>(unknowns)) / delta) /
      (2.0 * steps - 1.0);
  return root < 1.0 ? 1.0 / std::sqrt((1.0 - root) * (1.0 + root))
                    : std::numeric_limits<double>::infinity();
}

int steps_to_enclose(Index unknowns, double factor, double delta) {
  require(factor > 1.0, "steps_to_enclose: a factor of {}, not above 1",
          factor);
  // the factor falls with every step: halve the interval (low, high]
  const Index most = std::numeric_limits<int>::max();
  int low = 0, high = static_cast<int>(std::min(unknowns, most));
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (enclosure_factor(unknowns, middle, delta) <= factor ? high : low) = middle;
  }
  return high;
}

}  // namespace lipscope
