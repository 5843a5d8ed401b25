#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lipscope/audit/selection.h"
#include "lipscope/audit/source.h"
#include "lipscope/audit/text_piece.h"
#include "lipscope/spectral/estimate.h"

/// Options that several commands have in common.
namespace lipscope::cli {

/// MODEL_DIR, --weights, --random, --num-heads, --kind and its scales.
void declare_weights(CLI::App& app, audit::SourceOptions& options);

/// --length and --radius, for commands that speak of a set of sequences.
void declare_token_set(CLI::App& app, audit::SourceOptions& options);

/// The weights, and the tokens that are read or made.
void declare_source(CLI::App& app, audit::SourceOptions& options);

/// --map, --layers, --heads, --mask and, where the command has a choice of
/// norms, --norm.
void declare_selection(CLI::App& app, audit::SelectionOptions& options);

/// --text and --split, for a model of characters.
void declare_text_piece(CLI::App& app, audit::TextPieceOptions& options);

/// --tolerance, --max-steps, --enclose and --delta: how a norm is measured.
void declare_solver(CLI::App& app, MeasureOptions& options,
                    const std::string& group);

/// --strict, --seed and --threads.
void declare_effort(CLI::App& app, bool& strict, std::uint64_t& seed,
                    int& threads, const std::string& group);

}  // namespace lipscope::cli
