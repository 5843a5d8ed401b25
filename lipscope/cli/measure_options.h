#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lipscope/cli/output.h"
#include "lipscope/cli/selection.h"
#include "lipscope/cli/source.h"
#include "lipscope/spectral/estimate.h"

namespace lipscope::cli {

/// All that `lipscope measure` can be told.
struct MeasureCommandOptions {
  SourceOptions source;
  SelectionOptions selection;
  MeasureOptions solver;
  OutputOptions output;
  std::string certificate = "auto";
  std::string save_direction, save_input;
  double budget = 0.0;
  std::uint64_t memory = 0;
  bool strict = false;
  bool tokens = false;
};

void declare_measure(CLI::App& app, MeasureCommandOptions& options);

}  // namespace lipscope::cli
