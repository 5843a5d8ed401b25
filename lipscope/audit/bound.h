#pragma once

#include <string>
#include <vector>

#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/record/plan.h"
#include "lipscope/record/records.h"

namespace lipscope::audit {

/// Which maps are bounded, over sequences of which lengths and radius.
struct BoundRequest {
  SourceOptions source;
  SelectionOptions selection;
  int threads = 0;  ///< 0: all cores
};

/// Every bound from above that is proved for the selected maps: a record for
/// each, the best one marked. Attention that is not Lipschitz over all inputs,
/// and was given no radius, is answered with inputs at which it reacts ever
/// more strongly. InputError where nothing is known.
void bound(const BoundRequest& request, Records& records,
           const Watch& watch = {});

/// The questions of the request: a map and a length each, which `bound` answers
/// with every bound that is proved.
Plan plan(const BoundRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch = {});

}  // namespace lipscope::audit
