#pragma once

#include "lipscope/transport/measure.h"
#include "lipscope/transport/wasserstein.h"

namespace lipscope {

/// The distance of two measures: W₂ without positions, and with them the
/// conditional distance
///
///   d₂(μ̄, ν̄)² = ∫ W₂(μ^τ, ν^τ)² dθ(τ),
///
/// μ^τ the tokens at position τ and θ the masses of positions, which must be
/// those of ν̄ too: otherwise the distance is +∞, and the gap says nothing.
/// Sequences of n tokens are ‖X − Y‖_F/√n apart. The plan is between tokens.
Transport distance(const Measure& mu, const Measure& nu,
                   const TransportOptions& options = {});

}  // namespace lipscope
