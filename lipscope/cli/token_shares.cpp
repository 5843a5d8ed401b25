#include "lipscope/cli/token_shares.h"

#include <fmt/format.h>

#include "lipscope/core/errors.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

ordered_json shares_of(const Vector& flat, Index n) {
  require(n > 0 && flat.size() % n == 0, "token_shares: {} numbers, {} tokens",
          flat.size(), n);
  const double all = flat.squaredNorm();
  if (all == 0.0) return nullptr;
  ordered_json shares = ordered_json::array();
  const Index width = flat.size() / n;
  for (Index i = 0; i < n; ++i) {
    const double share = flat.segment(i * width, width).squaredNorm() / all;
    shares.push_back(std::stod(fmt::format("{:.3g}", share)));
  }
  return shares;
}

}  // namespace

ordered_json token_shares(const std::vector<std::string>& words, Index n,
                          const Measurement& measured) {
  ordered_json details = ordered_json::object();
  if (!words.empty()) details["tokens"] = words;
  details["input_share"] = shares_of(measured.direction, n);
  details["output_share"] = shares_of(measured.image, n);
  return details;
}

}  // namespace lipscope::cli
