#pragma once

#include <cmath>

#include "lipscope/core/rng.h"

namespace lipscope::campaign {

/// Random decisions of one case, in the order in which they are asked for.
class Dice {
 public:
  explicit Dice(const Rng& rng) : rng_(rng) {}

  /// 0, …, below − 1, all alike.
  Index pick(Index below) {
    return static_cast<Index>(rng_.uniform() * static_cast<double>(below));
  }
  /// 1, …, most; small ones more often: a size of a problem.
  Index size(Index most) {
    const double u = rng_.uniform();
    return 1 + static_cast<Index>(u * std::sqrt(u) * static_cast<double>(most));
  }
  /// A number of tokens up to most ≥ 2; one token, of which most bounds are
  /// exact, is rare.
  Index tokens(Index most) { return chance(0.03) ? 1 : 1 + size(most - 1); }
  bool chance(double p) { return rng_.uniform() < p; }
  double uniform() { return rng_.uniform(); }
  double normal() { return rng_.normal(); }
  /// From low to high, its logarithm uniform.
  double log_uniform(double low, double high) {
    return low * std::pow(high / low, rng_.uniform());
  }
  Matrix gaussian(Index rows, Index cols) {
    Matrix m(rows, cols);
    for (Index i = 0; i < m.size(); ++i) m.data()[i] = rng_.normal();
    return m;
  }
  std::uint64_t next() { return rng_.next(); }

 private:
  Rng rng_;
};

}  // namespace lipscope::campaign
