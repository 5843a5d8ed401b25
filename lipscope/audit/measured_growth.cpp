#include "lipscope/audit/measured_growth.h"

#include <algorithm>

#include "lipscope/record/key.h"

namespace lipscope::audit {

void MeasuredGrowth::note(const Part& part, const nlohmann::ordered_json& row) {
  Points& here = of_[part];
  here.points.push_back({row["n"].get<Index>(), row["lower"].get<double>(),
                         row["radius_rms"].get<double>()});
  here.keys.push_back(key_of(row));
}

void MeasuredGrowth::expect(const Part& part, Index n,
                            const nlohmann::ordered_json& question) {
  Points& here = of_[part];
  here.points.push_back({.n = n, .value = 1.0, .radius = 1.0});
  here.keys.push_back(key_of(question));
}

GrowthRecord MeasuredGrowth::record_of(const Record& of,
                                       const Selection& selection,
                                       const Part& part, const Points& points,
                                       const GrowthFit& fit) {
  Index longest = 0;
  for (const GrowthPoint& p : points.points) longest = std::max(longest, p.n);
  GrowthRecord g{of, points.keys, fit};
  g.of.layer = part.first;
  g.of.head = part.second;
  g.of.mask = mask_name(selection, part.first, longest);
  return g;
}

void MeasuredGrowth::plan(const Record& of, const Selection& selection,
                          Plan& plan) const {
  for (const auto& [part, here] : of_)
    // whether there are enough lengths for one
    if (const std::optional<GrowthFit> some = fit_growth(here.points))
      plan.add(record_of(of, selection, part, here, *some));
}

void MeasuredGrowth::write(const Record& of, const Selection& selection,
                           Records& records) const {
  for (const auto& [part, here] : of_) {
    std::vector<GrowthPoint> points = here.points;
    sort_points(points);
    if (const std::optional<GrowthFit> fit = fit_growth(points))
      records.add(record_of(of, selection, part, here, *fit));
  }
}

}  // namespace lipscope::audit
