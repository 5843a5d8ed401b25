#pragma once

#include <optional>
#include <string>

#include "lipscope/cli/output.h"
#include "lipscope/cli/source.h"
#include "lipscope/control/invert.h"

/// `lipscope invert` on a folder that train made: the text from the last
/// activations.
namespace lipscope::cli {

struct RecoverOptions {
  SourceOptions source;  ///< the folder, the text, or Y in `input`
  InvertOptions invert;
  bool f32 = false;  ///< round the activations to f32 first
  /// How far Y may be from the exact activations; what storing it may have
  /// done, if nothing is said.
  std::optional<double> given_error = {};
  std::string save_output;  ///< Y.npy, or nowhere
  std::string save_input;   ///< X.npy, or nowhere
  OutputOptions output;
  int threads = 0;
  bool strict = false;
};

/// Whether the folder is one that train made.
bool is_trained(const std::string& folder);

/// The exit code.
int recover(const RecoverOptions& options);

}  // namespace lipscope::cli
