#include "lipscope/audit/token_shares.h"

#include <fmt/format.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/spectral/token_flow.h"

namespace lipscope::audit {
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

ordered_json flow_rows(const Matrix& flow) {
  if (flow.size() == 0) return nullptr;
  ordered_json rows = ordered_json::array();
  for (Index i = 0; i < flow.rows(); ++i) {
    ordered_json row = ordered_json::array();
    for (Index j = 0; j < flow.cols(); ++j) {
      // 0.0 + turns -0 into 0
      row.push_back(0.0 + std::round(1e4 * flow(i, j)) / 1e4);
    }
    rows.push_back(row);
  }
  return rows;
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

std::vector<ordered_json> flow_details(const Map<double>& f, const Matrix& x,
                                       Index n,
                                       const std::vector<Measurement>& found) {
  std::vector<ordered_json> details(found.size(), ordered_json::object());
  if (n > longest_flow) return details;
  const std::vector<Matrix> flows = token_flows(*f.linearize(x), found, n);
  for (std::size_t i = 0; i < flows.size(); ++i)
    details[i]["flow"] = flow_rows(flows[i]);
  return details;
}

}  // namespace lipscope::audit
