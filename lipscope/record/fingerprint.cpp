#include "lipscope/record/fingerprint.h"

#include <fmt/format.h>

#include <bit>

#include "lipscope/io/sha256.h"

namespace lipscope {

std::string fingerprint(std::span<const Index> ids) {
  return sha256_text(fmt::format("{}", fmt::join(ids, " ")));
}

std::string fingerprint(const Matrix& x) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes = fmt::format("{} {}\n", x.rows(), x.cols());
  // row-major, without gaps
  bytes.append(reinterpret_cast<const char*>(x.data()),
               static_cast<std::size_t>(x.size()) * sizeof(double));
  return sha256_text(bytes);
}

std::string fingerprint(std::span<const std::string> texts) {
  std::string all;
  for (const std::string& text : texts)
    all += fmt::format("{}:{}", text.size(), text);
  return sha256_text(all);
}

}  // namespace lipscope
