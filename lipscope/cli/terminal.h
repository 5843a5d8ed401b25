#pragma once

#include <cstddef>

namespace lipscope::cli {

/// How many columns there are for what is printed to this file descriptor: what
/// the variable COLUMNS says; of a terminal its own width, 80 where it does not
/// know it; 0, no limit, for a file or a pipe.
std::size_t screen_width(int descriptor);

}  // namespace lipscope::cli
