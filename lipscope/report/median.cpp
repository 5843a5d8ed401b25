#include "lipscope/report/median.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// the two middle ones, the smaller first; the same one twice where the number
// of values is odd
std::pair<double, double> middle(std::vector<double>& values) {
  require(!values.empty(), "median: of no values");
  require(std::none_of(values.begin(), values.end(),
                       [](double v) { return std::isnan(v); }),
          "median: of values that are not numbers");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return {values.size() % 2 == 1 ? values[half] : values[half - 1],
          values[half]};
}

}  // namespace

double median(std::vector<double> values) {
  const auto [low, high] = middle(values);
  // halves first: the sum of two large numbers may exceed double
  return low == high || std::isinf(high) ? high : 0.5 * low + 0.5 * high;
}

double median_log10(std::vector<double> logarithms) {
  const auto [low, high] = middle(logarithms);
  return low == high || std::isinf(high)
             ? high
             : high + std::log10(0.5 * (1.0 + std::pow(10.0, low - high)));
}

}  // namespace lipscope
