#include "tests/campaign/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"

namespace lipscope::campaign {

void Tally::add(const std::vector<Claim>& claims, std::uint64_t number) {
  for (const Claim& c : claims) {
    Seen& s = seen_[c.name];
    const double ratio = c.ratio();
    // a ratio that is no number is a violation of everything
    const bool worse = std::isnan(ratio) || ratio > s.most;
    if (worse) {
      s.most =
          std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
      s.where = number;
    }
    if (c.mixed && ratio > s.mixed) s.mixed = ratio;
    ++s.cases;
  }
}

void Tally::add(const Tally& other) {
  for (const auto& [name, theirs] : other.seen_) {
    Seen& s = seen_[name];
    s.cases += theirs.cases;
    s.mixed = std::max(s.mixed, theirs.mixed);
    if (theirs.most > s.most) {
      s.most = theirs.most;
      s.where = theirs.where;
    }
  }
}

std::vector<Tally::Violation> Tally::violations() const {
  std::vector<Violation> found;
  for (const auto& [name, s] : seen_)
    if (!(s.most <= 1.0 + rounding)) found.push_back({name, s});
  return found;
}

std::string Tally::table() const {
  std::string text =
      "| bound | comparisons | largest measured/bound | at case | largest "
      "where "
      "attention is mixed |\n|---|---|---|---|---|\n";
  for (const auto& [name, s] : seen_)
    text += fmt::format("| {} | {} | {:.4f} | {} | {:.4f} |\n", name, s.cases,
                        s.most, s.where, s.mixed);
  return text;
}

nlohmann::ordered_json to_json(const Tally& tally) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, s] : tally.seen()) {
    // JSON has no infinity: null
    nlohmann::ordered_json most = nullptr;
    if (std::isfinite(s.most)) most = s.most;
    json[name] = {s.cases, most, s.where, std::min(s.mixed, 1e300)};
  }
  return json;
}

Tally tally_of(const nlohmann::ordered_json& json) {
  Tally tally;
  for (const auto& [name, row] : json.items()) {
    if (!row.is_array() || row.size() != 4 || !row[0].is_number_unsigned() ||
        !(row[1].is_number() || row[1].is_null()) ||
        !row[2].is_number_unsigned() || !row[3].is_number())
      throw InputError(fmt::format(
          "\"{}\": expected [comparisons, largest ratio, case, largest mixed]",
          name));
    tally.put(name, {row[0].get<std::uint64_t>(),
                     row[1].is_null() ? std::numeric_limits<double>::infinity()
                                      : row[1].get<double>(),
                     row[2].get<std::uint64_t>(), row[3].get<double>()});
  }
  return tally;
}

}  // namespace lipscope::campaign
