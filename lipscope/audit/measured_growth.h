#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lipscope/audit/selection.h"
#include "lipscope/record/plan.h"
#include "lipscope/record/records.h"
#include "lipscope/report/growth.h"

namespace lipscope::audit {

/// How what `measure` finds at each layer and head grows with the length.
class MeasuredGrowth {
 public:
  using Part = std::pair<std::optional<Index>, std::optional<Index>>;

  /// A row of this layer and head, found now or before.
  void note(const Part& part, const nlohmann::ordered_json& row);

  /// A question of this layer and head that will be answered elsewhere.
  void expect(const Part& part, Index n,
              const nlohmann::ordered_json& question);

  /// Adds the fits that follow from all of these to the plan.
  void plan(const Record& of, const Selection& selection, Plan& plan) const;

  /// Writes a fit for each of them that has enough points; `of` is what their
  /// questions have in common.
  void write(const Record& of, const Selection& selection,
             Records& records) const;

 private:
  struct Points {
    std::vector<GrowthPoint> points;
    std::vector<std::string> keys;  // of their records
  };
  static GrowthRecord record_of(const Record& of, const Selection& selection,
                                const Part& part, const Points& points,
                                const GrowthFit& fit);

  std::map<Part, Points> of_;
};

}  // namespace lipscope::audit
