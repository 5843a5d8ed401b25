#pragma once

#include <optional>
#include <string>

#include "lipscope/cli/output.h"
#include "lipscope/cli/source.h"
#include "lipscope/control/invert.h"

/// `lipscope invert` on a folder that train made: the text from the last
/// activations.
namespace lipscope::cli {

/// What only trained folders are asked.
struct TrainedOptions {
  std::string activations = "f64";  ///< as they are, or "f32": rounded first
  /// How far Y may be from the exact activations; what storing it may have
  /// done, if nothing is said.
  std::optional<double> given_error = {};
  std::string save_output;  ///< Y.npy, or nowhere
};

void declare_trained(CLI::App& app, TrainedOptions& options);
/// InputError if one of them was given.
void refuse_trained(const CLI::App& app);

struct RecoverOptions {
  SourceOptions source;  ///< the folder, the text, or Y in `input`
  InvertOptions invert;
  TrainedOptions trained;
  std::string save_input;  ///< X.npy, or nowhere
  OutputOptions output;
  int threads = 0;
  bool strict = false;
};

/// Whether the folder is one that train made.
bool is_trained(const std::string& folder);

/// The exit code. InputError if the command was given options that a whole
/// model has no use for.
int recover(const CLI::App& app, const RecoverOptions& options);

}  // namespace lipscope::cli
