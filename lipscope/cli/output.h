#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lipscope/cli/view.h"
#include "lipscope/record/records.h"

namespace lipscope::cli {

struct OutputOptions {
  bool json = false;
  bool quiet = false;
  std::string out;  ///< FILE.jsonl
  bool resume = false;
  bool force = false;
  std::string plan, shard;  ///< of a command that can be planned
  ViewOptions view;
};

/// --json, --out, --resume, --quiet, --force, --csv and --wide; with `rows`
/// also
/// --sort and --top.
void declare_output(CLI::App& app, OutputOptions& options, bool rows = true);

/// --force: of every command that writes files.
void declare_force(CLI::App& app, bool& force);

/// Where the records of a command go: into --out as each is made, and with
/// --json to standard output.
Records records_for(const OutputOptions& options);

/// To standard output, now. RunError if it cannot be written.
void print_out(const std::string& text);

/// Text for people, to standard output, now. What a terminal would obey is
/// written out (visible_text): names and texts come from outside.
void print_text(const std::string& text);

}  // namespace lipscope::cli
