#pragma once

#include <vector>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// Mass that goes from one point to another.
struct Shipment {
  Index from = 0, to = 0;
  double mass = 0.0;
};

/// W₂ with its evidence: a plan from above and dual potentials from below.
struct Transport {
  double value = 0.0;  ///< W₂ from above: the root of what the plan costs
  double below = 0.0;  ///< W₂ from below: the root of the dual value
  /// (cost of the plan − dual value)/cost: how far the plan may be from the
  /// best. Not small means not solved, and is for the reader to see.
  double relative_gap = 0.0;
  std::vector<Shipment> plan;
};

struct TransportOptions {
  double gap = 1e-12;   ///< done when the relative gap is below this
  int refinements = 5;  ///< solutions of the problem in reduced costs
};

/// W₂ of Σ_i a_i δ_{x_i} and Σ_j b_j δ_{y_j}, by exact optimal transport with
/// squared Euclidean costs c_ij = |x_i − y_j|²:
///
///   W₂² = min { Σ_ij π_ij c_ij : π ≥ 0, Σ_j π_ij = a_i, Σ_i π_ij = b_j }
///       = max { Σ_i a_i u_i + Σ_j b_j v_j : u_i + v_j ≤ c_ij }.
///
/// Network simplex (LEMON) works in 64-bit integers. Masses are taken as the
/// nearest multiples of about 2⁻⁶⁰ of the whole, which those of a Measure are
/// already; where both sides then have not the same sum, the largest mass of
/// the second gives way. For these masses the plan's marginals are exact.
/// Costs are rounded to integers as well, but neither side of the gap rests on
/// that: the plan's cost and the dual value are evaluated anew, in 80-bit
/// and 128-bit floating point, the dual after c-transforms, v_j = min_i(c_ij −
/// u_i) and u_i = min_j(c_ij − v_j), which make any potentials feasible. Where
/// the distance is tiny beside the points' extent, integer costs are too
/// coarse: the problem is then solved again in its reduced costs c_ij − u_i −
/// v_j, scaled up to where the gap is.
///
/// What counts is the share of each mass in their sum, which must be the same
/// on both sides up to 1e-9; each must be at least 2⁻⁶⁰ of it.
Transport wasserstein2(const Matrix& x, const Vector& a, const Matrix& y,
                       const Vector& b, const TransportOptions& options = {});

}  // namespace lipscope
