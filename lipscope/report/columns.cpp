#include "lipscope/report/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {

using nlohmann::ordered_json;

namespace {

bool diagnoses(const std::string& field) {
  return field == "residual" || field.ends_with("seconds");
}

}  // namespace

std::string compact_json(const ordered_json& value, int digits, int deepest) {
  require(deepest > 0, "a record is nested too deep");
  if (value.is_number_float() && std::isfinite(value.get<double>()))
    return fmt::format("{:.{}g}", value.get<double>(), digits);
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const ordered_json& item : value)
      parts.push_back(compact_json(item, digits, deepest - 1));
    return fmt::format("[{}]", fmt::join(parts, ","));
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      parts.push_back(compact_json(key) + ":" +
                      compact_json(item, digits, deepest - 1));
    return fmt::format("{{{}}}", fmt::join(parts, ","));
  }
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void Columns::Column::add(const std::string& value) {
  const auto [place, is_new] =
      places.try_emplace(value, static_cast<std::uint32_t>(values.size()));
  if (is_new) values.push_back(value);
  at.push_back(place->second);
}

void Columns::add(const ordered_json& record) {
  for (const auto& [field, value] : record.items()) {
    const auto [found, is_new] = columns_.try_emplace(field);
    if (is_new) fields_.push_back(field);
    Column& column = found->second;
    while (column.at.size() < size_) column.add("null");
    column.add(compact_json(value, diagnoses(field) ? 3 : 7));
  }
  ++size_;
}

std::string Columns::json() const {
  std::vector<std::string> written;
  for (const std::string& field : fields_) {
    Column column = columns_.at(field);
    while (column.at.size() < size_) column.add("null");
    std::string text;
    if (column.values.size() == 1) {
      text = fmt::format(R"({{"all":{}}})", column.values.front());
    } else if (2 * column.values.size() > size_) {
      std::vector<std::string_view> each;
      for (const std::uint32_t i : column.at) each.push_back(column.values[i]);
      text = fmt::format(R"({{"each":[{}]}})", fmt::join(each, ","));
    } else {
      text =
          fmt::format(R"({{"of":[{}],"at":[{}]}})",
                      fmt::join(column.values, ","), fmt::join(column.at, ","));
    }
    written.push_back(compact_json(field) + ":" + text);
  }
  return fmt::format("{{{}}}", fmt::join(written, ","));
}

}  // namespace lipscope
