#pragma once

#include <string>

#include "lipscope/audit/source.h"
#include "lipscope/core/errors.h"
#include "lipscope/text/windows.h"

namespace lipscope::audit {

/// The windows of a text, and what was chosen because it is short: a line for
/// people, or nothing.
struct FittedWindows {
  Windows windows;
  std::string note;
};

/// The text has fewer tokens than the windows that are asked for.
class TextTooShort : public InputError {
 public:
  TextTooShort(const std::string& message, Windows fits)
      : InputError(message + ". These would fit: " + as_options(fits)),
        short_message(message),
        windows(std::move(fits)) {}

  std::string short_message;  ///< without the windows that would fit
  Windows windows;            ///< they would fit
};

/// What --lengths and --samples say, and the usual where they say nothing.
Windows asked_windows(const SourceOptions& options);

/// The same within a text of so many tokens, or characters: what is not asked
/// for is chosen to fit. TextTooShort for what is
/// asked for and does not fit, or is longer than `positions`.
FittedWindows windows_of_text(const SourceOptions& options, Index tokens,
                              Index positions, const std::string& unit);

}  // namespace lipscope::audit
