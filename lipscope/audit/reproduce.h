#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/audit/progress.h"
#include "lipscope/experiments/experiment.h"
#include "lipscope/record/records.h"

namespace lipscope::audit {

/// Which figure or table of the papers is made again.
struct ReproduceRequest {
  std::string name;
  std::string model = {}, text = {};  ///< a folder and a file, or nothing
  ExperimentOptions experiment;
};

/// A figure with its rows and the fits of its curves.
struct Drawn {
  Figure figure;
  std::vector<nlohmann::ordered_json> rows = {}, fits = {};
};

std::vector<std::string> names_of_experiments();

/// The figures of the experiment, in the order in which it draws them: a record
/// for each point.
std::vector<Drawn> reproduce(const ReproduceRequest& request, Records& records,
                             const Watch& watch = {});

}  // namespace lipscope::audit
