#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"

namespace lipscope::cli {

/// How rows are shown, as the user says it.
struct ViewOptions {
  std::string sort;  ///< FIELD, FIELD:asc or FIELD:desc
  Index top = 0;     ///< so many rows; 0: all
  bool csv = false;
  bool wide = false;
};

/// --csv and --wide; with `rows` also --sort and --top.
void declare_view(CLI::App& app, ViewOptions& options, bool rows);

/// How a table is laid out.
struct View {
  bool quiet = false;     ///< no explanations
  std::size_t width = 0;  ///< columns of the screen; 0: no limit
};

using Rows = std::vector<nlohmann::ordered_json>;

/// Whether the rows have several masks, as layers with windows and without do.
bool masks_differ(const Rows& rows);

/// The mask of all rows, for the line ahead of their table; "of each row" where
/// they have several.
std::string common_mask(const Rows& rows);

/// The rows as --sort and --top ask for them: numbers from the largest down,
/// words from A to Z, what has no value last; equal ones stay in their order.
/// --top without --sort: by `usual`.
Rows chosen_rows(Rows rows, const ViewOptions& options,
                 const std::string& usual);

}  // namespace lipscope::cli
