#include "lipscope/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/visible_text.h"

namespace lipscope {

using nlohmann::ordered_json;

std::string cell(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float())
    return fmt::format("{:.6g}", value.get<double>());
  if (value.is_string()) return visible_line(value.get<std::string>());
  return visible_line(
      value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<ordered_json>& records) {
  std::vector<std::vector<std::string>> rows(records.size() + 1);
  for (const Column& column : columns) {
    rows[0].push_back(column.title);
    for (std::size_t r = 0; r < records.size(); ++r) {
      const auto at = records[r].find(column.field);
      rows[r + 1].push_back(at == records[r].end() ? "-" : cell(*at));
    }
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = 0;
    for (const auto& row : rows) width = std::max(width, row[c].size());
    for (auto& row : rows) row[c] = fmt::format("{:>{}}", row[c], width);
  }
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("{}\n", fmt::join(row, "  "));
  return text;
}

}  // namespace lipscope
