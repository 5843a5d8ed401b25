#include "lipscope/transport/ratio.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {

Measure moved(const Measure& measure, const Matrix& dx, double step) {
  require(dx.rows() == measure.x.rows() && dx.cols() == measure.x.cols(),
          "moved: [{}x{}] moves for [{}x{}] tokens", dx.rows(), dx.cols(),
          measure.x.rows(), measure.x.cols());
  return {measure.x + step * dx, measure.mass, measure.position};
}

Measure parted(const Measure& m, Index token, const Vector& g, double step) {
  require(token >= 0 && token < m.n(), "parted: token {} of {}", token, m.n());
  require(g.size() == m.x.cols(), "parted: {} numbers for a token of {}",
          g.size(), m.x.cols());
  std::vector<Index> of;  // the token of each piece
  for (Index i = 0; i < m.n(); ++i) of.insert(of.end(), i == token ? 2 : 1, i);
  Measure out{m.x(of, Eigen::all), m.mass(of),
              m.masked() ? Vector(m.position(of)) : Vector()};
  out.mass.segment(token, 2) /= 2.0;
  out.x.row(token) += step * g.transpose();
  out.x.row(token + 1) -= step * g.transpose();
  return out;
}

TransportRatio transport_ratio(const AttentionWeights& weights,
                               const AttentionOptions& options,
                               const Measure& mu, const Measure& nu) {
  TransportRatio r{.before = distance(mu, nu)};
  require(r.before.value > 0.0, "transport_ratio: the measures are the same");
  require(std::isfinite(r.before.value),
          "transport_ratio: the measures have different masses at their "
          "positions");
  r.after =
      distance(pushed(weights, options, mu), pushed(weights, options, nu));
  r.value = r.after.value / r.before.value;
  r.lower = r.after.below / r.before.value;
  r.relative_gap = std::max(r.before.relative_gap, r.after.relative_gap);
  return r;
}

}  // namespace lipscope
