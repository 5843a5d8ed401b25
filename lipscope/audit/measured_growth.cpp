#include "lipscope/audit/measured_growth.h"

#include <algorithm>
#include <tuple>

#include "lipscope/record/key.h"

namespace lipscope::audit {

void MeasuredGrowth::note(const Part& part, const nlohmann::ordered_json& row) {
  Points& here = of_[part];
  here.points.push_back({row["n"].get<Index>(), row["lower"].get<double>(),
                         row["radius_rms"].get<double>()});
  here.keys.push_back(key_of(row));
}

void MeasuredGrowth::write(const Record& of, const Selection& selection,
                           Records& records) const {
  for (const auto& [part, here] : of_) {
    // in one order, whether they were measured now or before
    std::vector<GrowthPoint> points = here.points;
    std::sort(points.begin(), points.end(),
              [](const GrowthPoint& a, const GrowthPoint& b) {
                return std::tie(a.n, a.value, a.radius) <
                       std::tie(b.n, b.value, b.radius);
              });
    const std::optional<GrowthFit> fit = fit_growth(points);
    if (!fit) continue;
    GrowthRecord g{of, here.keys, *fit};
    g.of.layer = part.first;
    g.of.head = part.second;
    g.of.mask = mask_name(selection, part.first, points.back().n);
    records.add(g);
  }
}

}  // namespace lipscope::audit
