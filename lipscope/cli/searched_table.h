#pragma once

#include <string>

#include "lipscope/cli/view.h"

namespace lipscope::cli {

/// Of the records of `search` those that are the best of one search: what the
/// starts on the way led to is left out.
Rows best_of_each(const Rows& records);

/// These for people; of a single search also what each start led to. A quiet
/// view leaves out what the columns mean.
std::string searched_table(const Rows& records, const View& view);

}  // namespace lipscope::cli
