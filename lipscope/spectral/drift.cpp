#include "lipscope/spectral/drift.h"

#include <cmath>
#include <numbers>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

// Let ω be standard Gaussian and E z = ‖E‖ w with unit z and w. Then
// ‖E ω‖ ≥ |⟨w, E ω⟩| = ‖E‖ |g| with g = ⟨z, ω⟩ standard normal, whose density
// is at most 1/√(2π), so that
//
//   P[‖E‖ > α √(2/π) ‖E ω‖] ≤ P[|g| < √(π/2)/α] ≤ √(2/π) √(π/2)/α = 1/α.
//
// All of r independent probes fail with probability at most α^{−r}: this is
// lemma 4.1 of [HalkoMartinssonTropp11]. With r = 3 and δ = 1e-10/3 the factor
// α √(2/π) is 2479, with r = 6 it is 44; with r = 2 it is 138,197, too much for
// the rounding of f32.

namespace lipscope {
namespace {

double drift_factor(int probes, double delta) {
  return std::pow(delta, -1.0 / probes) * std::sqrt(2.0 / std::numbers::pi);
}

}  // namespace

Drift::Drift(const LinearOperator<float>& rounded, const DriftOptions& options)
    : options_(options), cols_(rounded.cols() / options.sequences) {
  require(options.probes > 0 && options.delta > 0.0 && options.delta < 1.0,
          "Drift: {} probes, delta {}", options.probes, options.delta);
  require(options.sequences > 0 && rounded.rows() % options.sequences == 0 &&
              rounded.cols() % options.sequences == 0,
          "Drift: [{}x{}] has no {} parts of equal size", rounded.rows(),
          rounded.cols(), options.sequences);
  for (int i = 0; i < options.probes; ++i)
    images_.push_back(rounded.apply(probe(i).replicate(options.sequences, 1)));
}

VectorOf<float> Drift::probe(int i) const {
  return flatten(gaussian(cols_, 1, Rng(options_.seed).split(i))).cast<float>();
}

std::vector<double> Drift::bounds(const LinearOperator<double>& exact) const {
  const Index parts = options_.sequences, rows = exact.rows() / parts;
  require(images_[0].size() == exact.rows() && cols_ * parts == exact.cols(),
          "Drift: [{}x{}] in f32 and [{}x{}] in f64", images_[0].size(),
          cols_ * parts, exact.rows(), exact.cols());
  std::vector<double> longest(parts, 0.0);
  for (int i = 0; i < options_.probes; ++i) {
    const Vector all = probe(i).cast<double>().replicate(parts, 1);
    Vector drift = exact.apply(all);
    drift -= images_[i].cast<double>();
    for (Index s = 0; s < parts; ++s) {
      // a vector of its own: where it begins in memory must not matter
      const double length = Vector(drift.segment(s * rows, rows)).norm();
      if (!std::isfinite(length))
        throw RunError(fmt::format(
            "measure_norm: f32 and f64 differ by {} (sequence {})", length, s));
      longest[s] = std::max(longest[s], length);
    }
  }
  const double factor = drift_factor(options_.probes, options_.delta);
  for (double& length : longest) length *= factor;
  return longest;
}

int probes_for(double room, double delta) {
  constexpr double usual = 2e-5;
  int probes = 1;
  while (probes < 6 && drift_factor(probes, delta) * usual > room) ++probes;
  return probes;
}

}  // namespace lipscope
