#include "lipscope/report/representatives.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace lipscope {
namespace {

using nlohmann::ordered_json;

// what a record says of itself but for the window, the numbers and who made it
std::string group_of(const ordered_json& record, std::size_t file) {
  std::string key = std::to_string(file);
  for (const char* field :
       {"command", "model", "layer", "head", "map", "kind", "mask", "norm", "n",
        "scope", "dtype", "seed", "quantity", "value_of", "status"})
    if (const auto at = record.find(field); at != record.end())
      key += '\n' +
             at->dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  const auto parameters = record.find("parameters");
  if (parameters != record.end() && parameters->is_object())
    for (const auto& [name, value] : parameters->items())
      // of the window, or of the place of a prediction in its text
      if (name != "words_sha256" && name != "position")
        key +=
            '\n' + name +
            value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  return key;
}

double number_in(const ordered_json& record, const char* field) {
  const auto at = record.find(field);
  return at != record.end() && at->is_number() ? at->get<double>() : NAN;
}

}  // namespace

void Representatives::note(const ordered_json& record, std::size_t file) {
  const auto next = static_cast<std::uint32_t>(numbers_.size());
  groups_.push_back(
      numbers_.try_emplace(group_of(record, file), next).first->second);
  const double lower = number_in(record, "lower"),
               upper = number_in(record, "upper"),
               whp = number_in(record, "upper_whp"),
               value = number_in(record, "value");
  values_.push_back(static_cast<float>(!std::isnan(lower)   ? lower
                                       : !std::isnan(upper) ? upper
                                       : !std::isnan(value) ? value
                                                            : 0.0));
  always_.push_back(lower > upper || lower > whp);
}

void Representatives::choose() {
  kept_.assign(groups_.size(), true);
  if (groups_.size() <= most_) return;
  // an odd number, so that the middle one is among them
  of_each_ = std::max<std::size_t>(3, most_ / numbers_.size());
  of_each_ -= 1 - of_each_ % 2;
  std::vector<std::vector<std::size_t>> members(numbers_.size());
  for (std::size_t i = 0; i < groups_.size(); ++i)
    members[groups_[i]].push_back(i);
  for (std::vector<std::size_t>& group : members) {
    if (group.size() <= of_each_) continue;
    std::stable_sort(
        group.begin(), group.end(),
        [&](std::size_t a, std::size_t b) { return values_[a] < values_[b]; });
    for (const std::size_t i : group) kept_[i] = always_[i];
    for (std::size_t k = 0; k < of_each_; ++k)
      kept_[group[k * (group.size() - 1) / (of_each_ - 1)]] = true;
  }
}

bool Representatives::keeps(std::size_t i) {
  if (kept_.size() != groups_.size()) choose();
  return kept_[i];
}

std::size_t Representatives::of_each() {
  if (kept_.size() != groups_.size()) choose();
  return of_each_;
}

}  // namespace lipscope
