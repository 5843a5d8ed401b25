#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lipscope/transport/measure.h"

namespace lipscope {

struct WorstMeasureOptions {
  /// If there: atoms move too, within the ball of this radius.
  std::optional<double> radius = {};
  bool splitting = false;  ///< count what cutting a token does as well
  int restarts = 8;  ///< from random masses (and atoms), after the given ones
  int max_steps = 300;      ///< of each ascent
  double tolerance = 1e-9;  ///< an ascent ends when ten steps gain less
  std::uint64_t seed = 0;
  int threads = 0;  ///< over restarts; 0: all cores
};

struct WorstMeasure {
  Measure measure;     ///< the best found
  double value = 0.0;  ///< its local constant, in f64
  double start = 0.0;  ///< that of the measure given
  Index evaluations = 0;
  std::vector<double> found;  ///< by each ascent, the given measure's first
};

/// The largest unknown count n·d for which the Jacobian is formed at every
/// step.
inline constexpr Index most_atom_numbers = 64;

/// Masses on few atoms (and the atoms' places, if they may move) at which the
/// local constant of local_constant.h is large: a number from below.
///
/// Projected gradient ascent with Barzilai–Borwein steps on (θ, X), masses
/// w = softmax(θ) ≥ 1e-12, gradients by central differences of the norm of the
/// dense Jacobian, from the given measure and from random ones. The worst
/// measures have few atoms and very unequal masses [Castin24]. Without
/// positions only.
WorstMeasure worst_measure(const AttentionWeights& weights,
                           const AttentionOptions& options,
                           const Measure& start,
                           const WorstMeasureOptions& search = {});

}  // namespace lipscope
