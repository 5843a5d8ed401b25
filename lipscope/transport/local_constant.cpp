#include "lipscope/transport/local_constant.h"

#include <algorithm>

#include "lipscope/transport/fixed_measure_map.h"
#include "lipscope/transport/weighted_map.h"

namespace lipscope {
namespace {

template <class Real>
MapPtr<Real> moving_map(const AttentionWeights& weights,
                        const AttentionOptions& options,
                        const Measure& measure) {
  return weighted<Real>(std::make_unique<MultiHeadAttention<Real>>(
                            weights, options_on(measure, options)),
                        measure.mass);
}

// The n matrices B_i [e×d] are formed only while that is quick: n eigenproblems
// of size d.
Index splitting_limit(const Measure& m, const MeasureOptions& solver) {
  const Index d = m.x.cols();
  return m.n() * d * d * d <= (Index{1} << 30) ? solver.dense_limit : 0;
}

// the largest of all, if all are there
std::optional<double> largest(
    const std::vector<Measurement>& of,
    std::optional<double> (*value)(const Measurement&)) {
  double most = 0.0;
  for (const Measurement& m : of) {
    const std::optional<double> one = value(m);
    if (!one) return std::nullopt;
    most = std::max(most, *one);
  }
  return most;
}

std::optional<double> likely_upper(const Measurement& m) {
  return m.upper ? m.upper : m.upper_whp;
}

std::optional<double> larger(const std::optional<double>& a,
                             const std::optional<double>& b) {
  if (!a || !b) return std::nullopt;
  return std::max(*a, *b);
}

}  // namespace

double LocalConstant::lower() const {
  return std::max(moving.lower, splitting.lower);
}

std::optional<double> LocalConstant::upper() const {
  return larger(moving.upper, splitting_upper);
}

std::optional<double> LocalConstant::upper_whp() const {
  return larger(likely_upper(moving), splitting_upper_whp);
}

LocalConstant local_constant(const AttentionWeights& weights,
                             const AttentionOptions& options,
                             const Measure& measure,
                             const MeasureOptions& solver) {
  const Index n = measure.n(), d = measure.x.cols();
  LocalConstant found;

  MeasureOptions whole = solver;
  whole.sequences = 1;
  whole.delta = solver.delta / 2;
  found.moving = measure_norm(*moving_map<float>(weights, options, measure),
                              *moving_map<double>(weights, options, measure),
                              weighted_tokens(measure.x, measure.mass), whole);
  found.displacement =
      unweighted_tokens(unflatten(found.moving.direction, n, d), measure.mass);

  // n sequences of one token each, which do not see each other
  MeasureOptions each = solver;
  each.sequences = n;
  each.delta = solver.delta / (2 * static_cast<double>(n));
  each.dense_limit = splitting_limit(measure, solver);
  const std::vector<Measurement> tokens = measure_norms(
      *fixed_measure_map<float>(weights, options, measure),
      *fixed_measure_map<double>(weights, options, measure), measure.x, each);
  for (Index i = 0; i < n; ++i) {
    found.splitting_norms.push_back(tokens[i].lower);
    if (tokens[i].lower > tokens[found.token].lower) found.token = i;
  }
  found.splitting = tokens[found.token];
  // Where a token sees nothing but one other (or itself), its B_i is 0 or
  // rounding, in which no direction settles; such tokens do not decide.
  found.converged = found.moving.converged;
  for (const Measurement& b : tokens)
    if (b.lower > 1e-6 * found.splitting.lower)
      found.converged = found.converged && b.converged;
  found.splitting_upper =
      largest(tokens, [](const Measurement& m) { return m.upper; });
  found.splitting_upper_whp = largest(tokens, likely_upper);
  return found;
}

}  // namespace lipscope
