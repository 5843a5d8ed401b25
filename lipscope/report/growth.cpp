#include "lipscope/report/growth.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <set>
#include <tuple>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// Σ (x − x̄)(y − ȳ)
double covariation(const Vector& x, const Vector& y) {
  return (x.array() - x.mean()).matrix().dot((y.array() - y.mean()).matrix());
}

}  // namespace

void sort_points(std::vector<GrowthPoint>& points) {
  std::sort(points.begin(), points.end(),
            [](const GrowthPoint& a, const GrowthPoint& b) {
              return std::tie(a.n, a.value, a.radius) <
                     std::tie(b.n, b.value, b.radius);
            });
}

std::optional<GrowthFit> fit_growth(const std::vector<GrowthPoint>& points,
                                    double confidence) {
  require(confidence > 0.0 && confidence < 1.0, "fit_growth: confidence {}",
          confidence);
  std::vector<GrowthPoint> used;
  for (const GrowthPoint& p : points)
    if (p.n > 0 && p.value > 0.0 && std::isfinite(p.value)) used.push_back(p);
  std::set<Index> lengths;
  for (const GrowthPoint& p : used) lengths.insert(p.n);
  constexpr std::size_t fewest_lengths = 4;
  if (lengths.size() < fewest_lengths) return std::nullopt;
  const Index m = static_cast<Index>(used.size());

  Vector x(m), y(m), r(m);
  for (Index i = 0; i < m; ++i) {
    x[i] = std::log(static_cast<double>(used[i].n));
    y[i] = std::log(used[i].value);
    r[i] = std::log(std::max(used[i].radius, 1e-300));
  }
  const double xx = covariation(x, x), xy = covariation(x, y);
  const double yy = covariation(y, y), rr = covariation(r, r);

  GrowthFit fit;
  fit.points = m;
  fit.exponent = xy / xx;
  fit.constant = std::exp(y.mean() - fit.exponent * x.mean());
  const double left =
      (y.array() - y.mean() - fit.exponent * (x.array() - x.mean()))
          .matrix()
          .squaredNorm();
  fit.r_squared = yy > 0.0 ? 1.0 - left / yy : 1.0;
  const boost::math::students_t student(static_cast<double>(m - 2));
  const double reach = boost::math::quantile(student, (1.0 + confidence) / 2) *
                       std::sqrt(left / static_cast<double>(m - 2) / xx);
  fit.low = fit.exponent - reach;
  fit.high = fit.exponent + reach;
  // below a relative 1e-12 a radius varies by rounding alone
  if (yy > 0.0 && rr > 1e-24 * static_cast<double>(m))
    fit.radius_correlation = covariation(r, y) / std::sqrt(rr * yy);
  return fit;
}

}  // namespace lipscope
