#include "lipscope/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace lipscope::cli {

std::size_t screen_width(int descriptor) {
  constexpr std::size_t least = 20, usual = 80;
  if (const char* given = std::getenv("COLUMNS")) {
    const std::string_view text(given);
    std::size_t columns = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() &&
        columns >= least)
      return columns;
  }
  if (!isatty(descriptor)) return 0;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col < least)
    return usual;
  return size.ws_col;
}

}  // namespace lipscope::cli
