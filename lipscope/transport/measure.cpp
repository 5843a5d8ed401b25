#include "lipscope/transport/measure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

void require_of_measures(const Mask& mask) {
  require(mask == Mask::none || mask == Mask::causal,
          "measure: the mask \"{}\" makes no map of measures; expected none or "
          "causal",
          name_of(mask));
}

}  // namespace

Measure make_measure(Matrix x, Vector mass, Vector position) {
  const Index n = x.rows();
  require(n > 0 && x.cols() > 0, "measure: there are no tokens");
  require(x.allFinite(), "measure: the tokens are not all finite");
  require(mass.size() == n, "mass: {} masses for {} tokens", mass.size(), n);
  for (Index i = 0; i < n; ++i)
    require(std::isfinite(mass[i]) && mass[i] > 0.0,
            "mass: entry {} is {}; masses are positive", i, mass[i]);
  const double sum = mass.sum();
  require(std::abs(sum - 1.0) <= 1e-6, "mass: the masses sum to {}, not to one",
          sum);
  require(position.size() == 0 || position.size() == n,
          "position: {} positions for {} tokens", position.size(), n);
  for (Index i = 0; i < position.size(); ++i) {
    require(std::isfinite(position[i]), "position: entry {} is {}", i,
            position[i]);
    require(i == 0 || position[i] >= position[i - 1],
            "position: entry {} is {} after {}; sort the tokens by position", i,
            position[i], position[std::max<Index>(i, 1) - 1]);
  }
  for (Index i = 0; i < n; ++i) {
    const double before = mass[i];
    mass[i] = std::ldexp(std::nearbyint(std::ldexp(before / sum, 52)), -52);
    require(mass[i] > 0.0, "mass: entry {} is {}, below 2^-52", i, before);
  }
  Index largest = 0;
  mass.maxCoeff(&largest);
  mass[largest] += 1.0 - mass.sum();  // all of them exact
  return {std::move(x), std::move(mass), std::move(position)};
}

Measure uniform_measure(Matrix x, const Mask& mask) {
  const Index n = x.rows();
  require_of_measures(mask);
  require(n > 0, "measure: there are no tokens");
  Vector position;
  if (mask == Mask::causal)
    position = Vector::LinSpaced(n, 0.0, static_cast<double>(n - 1));
  return make_measure(std::move(x),
                      Vector::Constant(n, 1.0 / static_cast<double>(n)),
                      std::move(position));
}

Measure split_evenly(const Measure& m, Index pieces) {
  require(pieces >= 1, "split_evenly: into {} pieces", pieces);
  std::vector<Index> of;  // which token a piece is of
  for (Index i = 0; i < m.n(); ++i) of.insert(of.end(), pieces, i);
  return {m.x(of, Eigen::all), m.mass(of) / static_cast<double>(pieces),
          m.masked() ? Vector(m.position(of)) : Vector()};
}

std::vector<Index> tokens_seen(const Measure& m) {
  std::vector<Index> seen(m.n(), m.n());
  if (m.masked())
    for (Index i = 0; i < m.n(); ++i)
      seen[i] = std::upper_bound(m.position.begin(), m.position.end(),
                                 m.position[i]) -
                m.position.begin();
  return seen;
}

AttentionOptions options_on(const Measure& m, AttentionOptions o) {
  require(kind_of(o.kind).shares(),
          "measure: {} weights are not shares; there is no map of measures",
          name_of(o.kind));
  require(o.plain_scores(),
          "measure: rotary positions, q/k-norm and relative positions make no "
          "map of measures");
  require_of_measures(o.mask);
  require(o.sequences == 1, "measure: {} sequences, it takes one", o.sequences);
  o.mask = m.masked() ? Mask::causal : Mask::none;
  o.log_mass = m.mass.array().log();
  o.seen = tokens_seen(m);
  return o;
}

Measure pushed(const AttentionWeights& weights, const AttentionOptions& options,
               const Measure& m) {
  const MultiHeadAttention<double> f(weights, options_on(m, options));
  return {f(m.x), m.mass, m.position};
}

}  // namespace lipscope
