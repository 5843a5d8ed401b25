#pragma once

#include <string>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/record/merge.h"

namespace lipscope::audit {

/// Which journals of which plan are put together, and where.
struct MergeRequest {
  std::string plan;
  std::vector<std::string> files;  ///< journals of workers
  std::string out;                 ///< one file of records
  /// Where the questions without an answer go, as a plan. Written if there are
  /// some, and if the file is there already.
  std::string missing;
  MergeOptions merge = {};
};

struct Merged {
  Index questions = 0, missing = 0;
  Index records = 0, fits = 0;  ///< in the file
  Index duplicates = 0;         ///< equal to one that is kept
  Index cut = 0;                ///< by a budget: no answers
  /// For people: what differs between builds or kinds of CPU, and journals
  /// whose last line is incomplete.
  std::vector<std::string> notes;
};

/// One file of records in the order of the plan, as an undisturbed run writes
/// it (see Merge). InputError, with file and line, for journals that are not
/// sound or not of this plan, and for a file of which nothing can be read;
/// MergeConflict for answers that cannot both be right. Nothing is written
/// then.
Merged merge(const MergeRequest& request);

}  // namespace lipscope::audit
