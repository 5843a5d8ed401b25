#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/multi_head.h"
#include "lipscope/cli/source.h"

namespace lipscope::cli {

/// Which map of a layer is measured, and in which norm, as the user says it.
struct SelectionOptions {
  std::string map = "attn";
  std::string heads = "all";
  std::string mask = "auto";
  std::string norm = "2";
};

void declare_selection(CLI::App& app, SelectionOptions& options);

/// The same, understood.
struct Selection {
  bool project = true;  ///< attn; core otherwise
  Mask mask = Mask::none;
  std::string norm;  ///< "2" or "inf"
  /// Each is measured by itself; no number means all heads together.
  std::vector<std::optional<Index>> heads;
};

/// What the options mean for this layer. InputError for what it does not have.
Selection select(const SelectionOptions& options, const Layer& layer);

}  // namespace lipscope::cli
