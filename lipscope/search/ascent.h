#pragma once

#include <functional>

#include "lipscope/search/objective.h"
#include "lipscope/search/region.h"

namespace lipscope {

struct AscentOptions {
  /// At rest when a step of the length that the last bends allow promises to
  /// gain less than this share of the value.
  double tolerance = 1e-12;
  int max_evaluations = 1000;
  /// The size ℓ_i > 0 in which each token is measured: steps go along ℓ_i² ∇_i
  /// f. Where tokens of very different lengths matter, one size for all would
  /// suit the shortest alone. Empty: 1 for all.
  Vector sizes = {};
  /// Asked ahead of every evaluation; false ends the ascent. May be empty.
  std::function<bool()> keep_going = {};
};

/// Where an ascent came to.
struct Ascent {
  Matrix x;            ///< the best tokens seen
  double value = 0.0;  ///< what the objective said there
  double start = 0.0;  ///< and at the start
  int evaluations = 0;
  bool converged = false;  ///< at rest
};

/// Makes f large over the region from the tokens x on, by spectral projected
/// gradients [Birgin00]: with the step α of [BarzilaiBorwein88] and Π the
/// nearest point of the region,
///
///   z ← Π(z + α ℓ² ∇f),
///
/// α shortened until f is above the least of the last ten values by a share of
/// what the gradient promises. f need not grow at each step; the best tokens
/// are kept, so that the result is never below the start.
Ascent ascend(const std::function<Steepness(const Matrix& x)>& f,
              const Region& region, const Matrix& x,
              const AscentOptions& options = {});

}  // namespace lipscope
