#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lipscope/report/digits.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/record_fields.h"

namespace lipscope {

using nlohmann::ordered_json;

namespace {

// what is asked of both, as on the page: the same place, map, norm, length and
// sample, of records that have a constant from below
std::string key_of(const ordered_json& r) {
  ordered_json key;
  for (const char* field : {"layer", "head", "map", "norm", "n", "sample"})
    key.push_back(r.contains(field) ? r[field] : ordered_json());
  return key.dump();
}

}  // namespace

std::string compared_finding(const Findings& first, const Findings& second) {
  std::map<std::string, ordered_json> other;
  for (const ordered_json& r : second)
    if (number_of(r, "lower")) other.insert_or_assign(key_of(r), r);
  std::size_t pairs = 0, alike = 0;
  double largest = 0.0;  // |log10 of the ratio|
  double ratio = 1.0;
  ordered_json place;
  for (const ordered_json& r : first) {
    const auto a = number_of(r, "lower");
    const auto at = other.find(key_of(r));
    if (!a || at == other.end()) continue;
    const double b = *number_of(at->second, "lower");
    ++pairs;
    // six digits are what tables show
    if (std::abs(b - *a) <= 1e-6 * std::max(std::abs(*a), std::abs(b))) {
      ++alike;
      continue;
    }
    const double its = b / *a, size = std::abs(std::log10(its));
    if (!place.is_null() && size <= largest) continue;
    largest = size;
    ratio = its;
    place = r;
  }
  if (pairs == 0) return "Answer: the two files have no question in common.";
  const std::string common = counted(pairs, "question");
  if (alike == pairs)
    return fmt::format("Answer: the two files agree in all of {} in common.",
                       common);
  return fmt::format(
      "Answer: of {} in common {} agree to six digits and {} differ; the "
      "largest difference is a factor of {}, second over first ({}).",
      common, alike, pairs - alike,
      std::isfinite(ratio) ? six_digits(ratio) : "infinity", where(place));
}

}  // namespace lipscope
