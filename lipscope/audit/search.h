#pragma once

#include <string>
#include <vector>

#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/audit/witness.h"
#include "lipscope/record/plan.h"
#include "lipscope/record/records.h"
#include "lipscope/search/search.h"

namespace lipscope::audit {

/// Over which sequences the worst input of which maps is looked for.
struct SearchRequest {
  SourceOptions source;
  SelectionOptions selection;
  SearchOptions search{.budget = 60.0};
  int threads = 0;  ///< 0: all cores
  /// Files for the direction and the tokens of a single search; empty: none.
  std::string save_direction = {}, save_input = {};
  /// Called with the direction and the tokens of the best of each search. May
  /// be empty.
  TakeWitness witness = {};
};

/// The inputs at which the selected maps react most: a record for each start
/// that led higher than those before it, and one for the best, beside the best
/// bound from above. The run has converged if no search was cut by the budget
/// and the best input of each is at rest.
Outcome search(const SearchRequest& request, Records& records,
               const Watch& watch = {});

/// The questions of the request, one for each map and length.
Plan plan(const SearchRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch = {});

}  // namespace lipscope::audit
