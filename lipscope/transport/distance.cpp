#include "lipscope/transport/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// tokens [begin, end) of one position
struct Place {
  double position;
  Index begin, end;
  double mass;
};

std::vector<Place> places(const Measure& m) {
  std::vector<Place> all;
  for (Index i = 0; i < m.n(); ++i) {
    if (all.empty() || m.position[i] != all.back().position)
      all.push_back({m.position[i], i, i, 0.0});
    all.back().end = i + 1;
    all.back().mass += m.mass[i];
  }
  return all;
}

// up to what rounding makes of a mass that is cut into pieces
bool same_marginals(const std::vector<Place>& a, const std::vector<Place>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Place& p, const Place& q) {
                      return p.position == q.position &&
                             std::abs(p.mass - q.mass) <= 1e-12 * p.mass;
                    });
}

}  // namespace

Transport distance(const Measure& mu, const Measure& nu,
                   const TransportOptions& options) {
  require(mu.masked() == nu.masked(),
          "distance: one measure has positions, the other has none");
  if (!mu.masked()) return wasserstein2(mu.x, mu.mass, nu.x, nu.mass, options);

  const std::vector<Place> from = places(mu), to = places(nu);
  if (!same_marginals(from, to)) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    return {.value = infinite, .below = infinite};
  }
  Transport all;
  double above = 0.0, below = 0.0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const Place &p = from[k], &q = to[k];
    const Transport at =
        wasserstein2(mu.x.middleRows(p.begin, p.end - p.begin),
                     mu.mass.segment(p.begin, p.end - p.begin),
                     nu.x.middleRows(q.begin, q.end - q.begin),
                     nu.mass.segment(q.begin, q.end - q.begin), options);
    above += p.mass * at.value * at.value;
    below += p.mass * at.below * at.below;
    for (const Shipment& s : at.plan)
      all.plan.push_back({p.begin + s.from, q.begin + s.to, s.mass * p.mass});
  }
  all.value = std::sqrt(above);
  all.below = std::sqrt(below);
  all.relative_gap = above > 0.0 ? (above - below) / above : 0.0;
  return all;
}

}  // namespace lipscope
