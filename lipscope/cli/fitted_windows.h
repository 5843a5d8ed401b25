#pragma once

#include <string>

#include "lipscope/cli/source.h"
#include "lipscope/text/windows.h"

namespace lipscope::cli {

/// The windows of a text, and what was chosen because it is short: a line for
/// people, or nothing.
struct FittedWindows {
  Windows windows;
  std::string note;
};

/// What --lengths and --samples say, and the usual where they say nothing.
Windows asked_windows(const SourceOptions& options);

/// The same within a text of so many tokens, or characters: what is not asked
/// for is chosen to fit. InputError, with a command that works, for what is
/// asked for and does not fit, or is longer than `positions`.
FittedWindows windows_of_text(const SourceOptions& options, Index tokens,
                              Index positions, const std::string& unit);

}  // namespace lipscope::cli
