#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace lipscope {

/// The world is wrong: a file, a format, a command line. The message names the
/// file, the place in it, and what was expected there.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The run could not be carried through though its input was fine: a full disk,
/// no memory, a number that is not finite.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws std::invalid_argument unless the caller kept its side: shapes,
/// ranges, finite numbers. The message starts with where it was asked and
/// carries the numbers: "dot_product: tokens have 7 features, the head reads
/// 6".
template <class... Args>
void require(bool kept, fmt::format_string<Args...> message, Args&&... args) {
  if (!kept)
    throw std::invalid_argument(
        fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace lipscope
