#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lipscope::cli {

/// What a command does once its options are parsed; returns the exit code.
using Run = std::function<int()>;

/// Each declares its options on `app` and says what to run.
Run measure_command(CLI::App& app);
Run bound_command(CLI::App& app);
Run search_command(CLI::App& app);
Run meanfield_command(CLI::App& app);
Run invert_command(CLI::App& app);
Run train_command(CLI::App& app);
Run eval_command(CLI::App& app);
Run sample_command(CLI::App& app);
Run certify_command(CLI::App& app);
Run plan_command(CLI::App& app);
Run merge_command(CLI::App& app);
Run report_command(CLI::App& app);
Run compare_command(CLI::App& app);
Run reproduce_command(CLI::App& app);
Run doctor_command(CLI::App& app);

}  // namespace lipscope::cli
