#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lipscope/cli/record.h"
#include "lipscope/spectral/estimate.h"

namespace lipscope::cli {

/// --tolerance, --max-steps, --enclose and --delta: how a norm is measured.
void declare_solver(CLI::App& app, MeasureOptions& options,
                    const std::string& group);

/// What they and --memory say, for the key of a record whose n and d are known.
void tell_solver(const MeasureOptions& options, Record& record);

/// --strict, --seed and --threads.
void declare_effort(CLI::App& app, bool& strict, std::uint64_t& seed,
                    int& threads, const std::string& group);

}  // namespace lipscope::cli
