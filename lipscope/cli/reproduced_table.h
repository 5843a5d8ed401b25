#pragma once

#include <string>

#include "lipscope/cli/view.h"
#include "lipscope/experiments/experiment.h"

namespace lipscope::cli {

/// The records of a figure of `reproduce` for people, under its title:
/// constants line by line, or values with a line for each x and a column for
/// each series. A quiet view leaves out the explanation.
std::string figure_table(const Figure& figure, Rows rows, const View& view);

}  // namespace lipscope::cli
