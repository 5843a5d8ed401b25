#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/multi_head.h"
#include "lipscope/operators/norm.h"
#include "lipscope/search/region.h"

namespace lipscope {

/// Tokens at which attention is known, or expected, to react strongly.
struct Construction {
  std::string name;
  Matrix x;  ///< [n×d], in the region
  /// What theory gives from below at x, and in which norm (two or inf), where
  /// it gives something.
  std::optional<double> predicted = {};
  std::optional<Norm> norm = {};
};

/// Inputs of n tokens made from the weights of each chosen head, and of the
/// region alone [Castin24, Kim21; the forms here]. With A = W_Q W_Kᵀ/√k,
/// c = b_Q W_Kᵀ/√k, V the value map, all seen from the coordinates z of the
/// region, and λ, u an extreme eigenvalue of (A + Aᵀ)/2 with its unit vector:
///
///   growth       one token s, all others t, s first (a causal mask lets all
///                others see it), or under a window or padding the first token
///                that most see. If λ_max > −8λ_min: s = ρu, t = ρu/2,
///                γ = λ_max/8; otherwise s = −ρu, t = ρu, γ = −λ_min
///   growth, other sign   the case that the condition does not choose
///   singular pair        s = ρb, t = ρa for the top singular pair aAbᵀ
///   growth (or pair), m of n at r R   the same with m tokens s and both
///                shrunk, as the prediction likes best: the two atoms of the
///                mean-field limit as a sequence
///   balanced     t = ±τρa, and two tokens ρ(cos θ b ± sin θ e): b along
///                w = tA + c, e orthogonal to it with |eV| largest, θ such that
///                all others look at these two, and at both alike, τ ≤ 1 as the
///                prediction likes best
///   ties         tokens at ±ρu in turn
///   repeated     all tokens at ρu
///   kim          tied L2: a token at 0 and half of the others at each of
///                ±√((p+1)/λ) u, p = W₀((n−1)/e), λ the largest eigenvalue
///                of A = W_Q W_Qᵀ/√k; under a mask also with the token that
///                sees most at 0 (n is what it sees)
///
/// Two atoms, dot-product, one head: move all m tokens s together along g. With
/// w = tA + c, an other token gives them the weight P = k/(k + l e^{−w·(s−t)})
/// if it sees k of them (all m, unless a window hides some) and l tokens t, and
/// moves by P(g + (1−P)(w·g)(s−t))V/√m; summed over
/// the others that is `predicted`. For growth, without biases and V = I, it is
/// √(n−1)·P(1 + 2(1−P)γR²).
///
/// Balanced, the same: move the two apart along w. Their means stay, and an
/// other token that sees both and gives them the weight P moves by P|w|ρ sin θ
/// |eV|/√2. For large scores and V = I that is √(n−2)·a·τ sin θ/√2: within a
/// factor √2 of column_sums where aAaᵀ ≤ 0, and within 2√2 always (A = I: τ =
/// cos θ = 1/√2).
///
/// Kim: 4p − 1 + 2/(p+1) in the inf-norm for odd n and H = d = 1, times
/// |λ W_V W_O|.
///
/// Where the region has no radius, ρ is that of kim.
std::vector<Construction> constructions(const AttentionWeights& weights,
                                        const AttentionOptions& options,
                                        const Region& region, Index n);

/// The size of z at which scores are of the size that matters: √((p+1)/‖A‖) for
/// the largest score form of the chosen heads, seen from the region.
double natural_radius(const AttentionWeights& weights,
                      const AttentionOptions& options, const Region& region,
                      Index n);

}  // namespace lipscope
