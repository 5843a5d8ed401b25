#pragma once

#include <cstdint>
#include <vector>

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

struct DriftOptions {
  int probes = 3;
  double delta = 1e-10;    ///< probability with which a bound may fail
  std::uint64_t seed = 0;  ///< of the probes
  Index sequences = 1;     ///< parts of equal size down the diagonal of J
};

/// ‖J − J̃‖₂ from above with high probability, part by part: how far an operator
/// J̃ that is computed in f32 is from what it stands for.
///
/// With E = J − J̃ and r Gaussian probes ω_i, drawn in f32,
///
///   ‖E‖₂ ≤ α √(2/π) max_i ‖E ω_i‖,   α = δ^{−1/r},
///
/// except with probability δ [HalkoMartinssonTropp11]; proved in the .cpp. J̃ is
/// needed only while this is made, so that J need not stand beside it. Probes
/// are drawn twice rather than kept.
class Drift final {
 public:
  Drift(const LinearOperator<float>& rounded, const DriftOptions& options);

  /// The bound for each part; `exact` is J.
  std::vector<double> bounds(const LinearOperator<double>& exact) const;

 private:
  // the same for every part: none is drawn for its neighbours
  VectorOf<float> probe(int i) const;

  DriftOptions options_;
  Index cols_;                           // of one part
  std::vector<VectorOf<float>> images_;  // J̃ ω of all parts
};

/// The fewest probes, at most 6, after which the bound is likely no more than
/// `room` times ‖J‖: max ‖E ω_i‖ is taken for 2e-5 of it, somewhat more than
/// was seen on layers of real models (2.5e-6 to 1.3e-5, n·d up to 10⁵). This
/// decides effort alone; what holds is bounds().
int probes_for(double room, double delta);

}  // namespace lipscope
