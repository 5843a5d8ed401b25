#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// How far above σ̂, the value after m steps from a uniformly random start in
/// R^N, the norm can be [KuczynskiWozniakowski92]: except with probability δ,
///
///   ‖A‖₂ ≤ σ̂ / √(1−ε),   √ε = ln(1.648 √N / δ) / (2m − 1),
///
/// in exact arithmetic; +∞ (no statement) while ε ≥ 1. The exception is one
/// event for all m, so a run may stop whenever it likes. Proved in the .cpp.
double enclosure_factor(Index unknowns, int steps, double delta);

/// The fewest steps after which enclosure_factor is at most `factor` (> 1), or
/// `unknowns`, when the Krylov space is the whole space, if those are fewer.
int steps_to_enclose(Index unknowns, double factor, double delta);

}  // namespace lipscope
