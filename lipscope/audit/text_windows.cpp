#include "lipscope/audit/text_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/errors.h"

namespace lipscope::audit {
Windows asked_windows(const SourceOptions& o) {
  Windows w = usual_windows();
  if (!o.lengths.empty()) w.lengths = parse_lengths(o.lengths);
  if (o.samples > 0) w.samples = o.samples;
  return w;
}

FittedWindows windows_of_text(const SourceOptions& o, Index tokens,
                              Index positions, const std::string& unit) {
  const std::string text = text_name(o);
  const Windows asked = asked_windows(o);
  const Index left = tokens - o.offset;
  if (left < 1)
    throw InputError(tokens < 1 ? fmt::format("{}: no {} in it", text, unit)
                                : fmt::format("--offset {}: {} has {} {}",
                                              o.offset, text, tokens, unit));
  const Index longest =
      *std::max_element(asked.lengths.begin(), asked.lengths.end());
  if (!o.lengths.empty() && longest > positions)
    throw InputError(fmt::format(
        "--lengths {}: a window of {} {}, and the model has {} positions",
        o.lengths, longest, unit, positions));
  const std::optional<Windows> fits =
      windows_within(left, positions,
                     o.lengths.empty() ? std::optional<std::vector<Index>>()
                                       : std::optional(asked.lengths),
                     o.samples > 0 ? std::optional(o.samples) : std::nullopt);
  if (!fits)
    throw TextTooShort(
        fmt::format("{} has {} {}, and {} are needed for {}", text, left, unit,
                    asked.tokens(), in_words(asked)),
        *windows_within(left, positions, {}, {}));
  FittedWindows result{*fits, ""};
  if (fits->lengths != asked.lengths || fits->samples != asked.samples)
    result.note = fmt::format(
        "{} has {} {}: {} (--lengths and --samples "
        "choose others)",
        text, left, unit, in_words(*fits));
  return result;
}

}  // namespace lipscope::audit
