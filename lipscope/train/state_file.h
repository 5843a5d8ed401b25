#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// state.json of a folder that is being trained: where training stands and
/// which file holds it.
struct StateFile {
  Index step = 0;                  ///< steps done
  std::string sha256;              ///< of the checkpoint
  std::optional<double> best_nll;  ///< of validation, and when it was seen
  Index best_step = 0;

  /// The file beside it, "checkpoint-N.safetensors" after N steps.
  std::string checkpoint() const;
};

std::string to_text(const StateFile& state);

/// state.json of the folder. InputError where there is none.
StateFile read_state(const std::filesystem::path& folder);

/// InputError, beginning with `where`, for what is missing, malformed or out of
/// range, and for a checkpoint that is not called so.
StateFile parse_state(std::string_view text, const std::string& where);

}  // namespace lipscope
