#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace lipscope::test {

/// The folder of models, tokenizers and texts that are no part of the project:
/// the one that LIPSCOPE_MODELS names, else `shared` beside the project.
/// Nothing where neither is there; a test that needs it then skips itself.
inline std::optional<std::filesystem::path> shared_folder() {
  const char* named = std::getenv("LIPSCOPE_MODELS");
  const std::filesystem::path folder =
      named != nullptr ? std::filesystem::path(named)
                       : std::filesystem::path(LIPSCOPE_SOURCE) / "../shared";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace lipscope::test
