#include "lipscope/cli/reproduced_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// values that are no constants: a line for each x, a column for each series
std::string value_table(const Figure& figure,
                        const std::vector<ordered_json>& rows,
                        const View& view) {
  std::vector<Column> columns = {{"x", figure.x_name}};
  std::vector<ordered_json> lines;
  bool starred = false;
  for (const ordered_json& row : rows) {
    const std::string series = row["series"];
    const auto is_series = [&](const Column& c) { return c.title == series; };
    if (std::none_of(columns.begin() + 1, columns.end(), is_series))
      columns.push_back({"of " + series, series, 1});
    const auto same_x = [&](const ordered_json& l) {
      return l["x"] == row["x"];
    };
    auto line = std::find_if(lines.begin(), lines.end(), same_x);
    if (line == lines.end())
      line = lines.insert(lines.end(), ordered_json{{"x", row["x"]}});
    const bool converged = row["status"] == "converged";
    starred = starred || !converged;
    (*line)["of " + series] = cell(row["value"]) + (converged ? "" : " *");
  }
  return figure.y_name + ":\n" + table(columns, lines, view.width) +
         (starred ? "* not converged\n" : "");
}

// a line of the table: what was asked stands among what was found
ordered_json reproduced_line(ordered_json record) {
  const ordered_json asked = record["parameters"];
  record.update(asked);
  if (record["upper"].is_null() && record["upper_log10"].is_number())
    record["upper"] =
        fmt::format("10^{:.1f}", record["upper_log10"].get<double>());
  return record;
}

}  // namespace

std::string figure_table(const Figure& figure, Rows rows, const View& view) {
  for (ordered_json& row : rows) row = reproduced_line(std::move(row));
  std::string text = figure.title + "\n";
  if (!view.quiet)
    text +=
        wrapped(figure.explanation, view.width == 0 ? 80 : view.width) + "\n";
  if (rows.front().contains("value_of"))
    return text + "\n" + value_table(figure, rows, view) + "\n";
  return text + "\n" +
         table({{"series", "series"},
                {"x", figure.x_name},
                {"n", "n", 4},
                {"mask", "mask", 5},
                {"norm", "norm", 6},
                {"lower", "lower"},
                {"lower_by", "by", 3},
                {"upper", "upper"},
                {"upper_by", "by", 1},
                {"scope", "scope", 2},
                {"status", "status", 7}},
               rows, view.width) +
         "\n";
}

}  // namespace lipscope::cli
