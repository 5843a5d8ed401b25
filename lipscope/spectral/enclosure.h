#pragma once

namespace lipscope {

/// c₀, what a random start has of the direction z that A stretches most: for
/// the start g + h with g standard Gaussian and h any vector that was fixed
/// before g was drawn (h = 0: uniformly random), of `length` ‖g + h‖ as drawn,
///
///   |⟨z, g + h⟩| / ‖g + h‖ ≥ c₀ = 0.97 δ √(π/2) / ‖g + h‖
///
/// except with probability 0.97 δ, whatever z and h are; at most 1. So a hint h
/// costs no more than the length that it adds. Proved in the .cpp.
double start_overlap(double length, double delta);

/// How far above σ̂, the value after m steps from a start that has at least c₀
/// of z, the norm can be, in exact arithmetic:
///
///   ‖A‖₂ ≤ σ̂ cosh( acosh(1/c₀) / (2m − 1) )
///
/// for every m ≥ 1. With c₀ = start_overlap this fails with probability less
/// than δ; the exception is one event for all m, so a run may stop whenever it
/// likes. The form of [KuczynskiWozniakowski92], σ̂/√(1−ε) with √ε = acosh(1/c₀)
/// /(2m−1), is weaker. Proved in the .cpp.
double enclosure_factor(double overlap, int steps);

/// The fewest steps after which enclosure_factor is at most `factor` (> 1).
int steps_to_enclose(double overlap, double factor);

}  // namespace lipscope
