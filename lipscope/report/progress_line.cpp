#include "lipscope/report/progress_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/report/wrap.h"

namespace lipscope {
namespace {

std::string bar_of(double share, int width) {
  if (width == 0) return "";
  const int filled = std::clamp(static_cast<int>(width * share), 0, width);
  return fmt::format("[{:#>{}}{:.>{}}] ", "", filled, "", width - filled);
}

}  // namespace

std::string progress_line(const ProgressText& text, std::size_t width) {
  const std::string left = text.left.empty() ? "" : ", " + text.left;
  std::string said = fmt::format("{}/{} {}", text.done, text.total, text.doing);
  for (const int bar : {24, 12, 0}) {
    const std::string line = bar_of(text.share, bar) + said + left;
    if (display_width(line) < width) return line;
  }
  while (said.find(',') != said.npos) {
    said.resize(said.rfind(','));
    if (display_width(said + left) < width) return said + left;
  }
  return "";
}

}  // namespace lipscope
