#include "lipscope/report/record_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lipscope/report/digits.h"

namespace lipscope {

using nlohmann::ordered_json;

std::optional<double> number_of(const ordered_json& record,
                                const std::string& field) {
  if (!record.is_object()) return std::nullopt;
  const auto at = record.find(field);
  if (at == record.end() || !at->is_number()) return std::nullopt;
  const auto value = at->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_of(const ordered_json& record, const std::string& field) {
  if (!record.is_object()) return "";
  const auto at = record.find(field);
  return at != record.end() && at->is_string() ? at->get<std::string>() : "";
}

const ordered_json& inside(const ordered_json& record,
                           const std::string& field) {
  static const ordered_json nothing = ordered_json::object();
  const auto at = record.find(field);
  return at != record.end() && at->is_object() ? *at : nothing;
}

std::string whose(const ordered_json& record) {
  const auto layer = number_of(record, "layer");
  const auto head = number_of(record, "head");
  if (layer && head) return fmt::format("layer {}, head {}", *layer, *head);
  if (layer) return fmt::format("layer {}", *layer);
  if (head) return fmt::format("head {}", *head);
  return text_of(record, "map") == "model" ? "the model" : "the layer";
}

std::string where(const ordered_json& record) {
  const auto n = number_of(record, "n");
  return n && *n > 0 ? fmt::format("{}, n = {}", whose(record), *n)
                     : whose(record);
}

std::optional<UpperNumber> upper_of(const ordered_json& record) {
  if (const auto upper = number_of(record, "upper"))
    return UpperNumber{std::log10(*upper), six_digits_above(*upper)};
  if (const auto log10 = number_of(record, "upper_log10"))
    return UpperNumber{*log10,
                       fmt::format("10^{:.1f}", std::ceil(10 * *log10) / 10)};
  return std::nullopt;
}

std::string counted(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string not_converged(const std::vector<ordered_json>& records,
                          const std::string& noun) {
  const auto open = static_cast<std::size_t>(
      std::count_if(records.begin(), records.end(), [](const ordered_json& r) {
        return text_of(r, "status") == "not-converged";
      }));
  if (open == 0) return "";
  return fmt::format(" {} of {} did not converge.", open,
                     counted(records.size(), noun));
}

}  // namespace lipscope
