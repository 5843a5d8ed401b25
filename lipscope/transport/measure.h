#pragma once

#include "lipscope/attention/multi_head.h"

namespace lipscope {

/// Tokens that weigh: the measure μ = Σ_i w_i δ_{x_i} [Castin24].
///
/// With positions it is a measure on positions and tokens, μ̄ = Σ_i w_i
/// δ_(s_i, x_i), under a mask: a token sees what stands at positions τ ≤ its
/// own, and so also what shares its position.
struct Measure {
  Matrix x;         ///< [n×d]
  Vector mass;      ///< [n], all > 0, of sum one
  Vector position;  ///< [n], never decreasing; empty: no mask

  Index n() const { return x.rows(); }
  bool masked() const { return position.size() > 0; }
};

/// The measure of these tokens. Masses are divided by their sum, which may miss
/// one by 1e-6 and no more, and rounded to multiples of 2⁻⁵², the largest
/// taking up the rest: they sum to one exactly, and halves of them are exact.
///
/// Throws std::invalid_argument with the numbers for another sum, a mass that
/// is not positive or below 2⁻⁵², lengths that differ, positions that decrease,
/// no tokens, and what is not finite.
Measure make_measure(Matrix x, Vector mass, Vector position = {});

/// A sequence as a measure: equal masses and, under a causal mask, positions
/// 0, 1, …, n − 1. Throws for a window or padding: distances in the sequence
/// and tokens that are not seen are nothing that a measure knows.
Measure uniform_measure(Matrix x, const Mask& mask);

/// Every token cut into `pieces` equal ones that stand where it stood.
Measure split_evenly(const Measure& measure, Index pieces);

/// How many tokens each one sees, from the first on: all, or those at positions
/// up to its own.
std::vector<Index> tokens_seen(const Measure& measure);

/// The options of attention on this measure, P_ij ∝ w_j e^{s_ij} over what is
/// seen. Throws unless the kind has weights that are shares of a whole and no
/// positions of its own (no sigmoid, no RoPE), and for masks with a window or
/// padding.
AttentionOptions options_on(const Measure& measure, AttentionOptions options);

/// F(μ) = (Γ_μ)_#μ: the same masses at the same positions, at the outputs
///
///   Γ_μ(x) = Σ_j w_j e^{s(x, x_j)} x_j V / Σ_j w_j e^{s(x, x_j)}.
Measure pushed(const AttentionWeights& weights, const AttentionOptions& options,
               const Measure& measure);

}  // namespace lipscope
