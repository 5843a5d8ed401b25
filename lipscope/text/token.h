#pragma once

#include <cstddef>
#include <cstdint>

namespace lipscope {

/// The number of a piece in its vocabulary, and of a row in the embedding.
using TokenId = std::int32_t;

/// One piece of a text, and where it stands there.
struct Token {
  TokenId id = 0;
  std::size_t begin = 0;  ///< first byte of the text that it stands for
  std::size_t end = 0;    ///< one past the last

  bool operator==(const Token&) const = default;
};

}  // namespace lipscope
