#include "lipscope/cli/view.h"

#include <algorithm>
#include <limits>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/report/table.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

const std::vector<std::string>& sortable() {
  static const std::vector<std::string> fields = {
      "layer",      "head",     "n",     "sample",    "radius_max",
      "radius_rms", "lower",    "upper", "upper_whp", "upper_log10",
      "upper_by",   "lower_by", "value", "residual",  "steps",
      "status",     "seconds"};
  return fields;
}

// upper counts by its logarithm where only that is a number
ordered_json value_of(const ordered_json& row, const std::string& field) {
  const auto at = row.find(field);
  if (at != row.end() && !at->is_null()) return *at;
  if (field == "upper" && row.contains("upper_log10") &&
      row["upper_log10"].is_number())
    return std::numeric_limits<double>::infinity();
  return nullptr;
}

}  // namespace

void declare_view(CLI::App& app, ViewOptions& o, bool rows) {
  const char* group = "Output";
  app.add_flag("--csv", o.csv,
               "print comma-separated values instead of the table: a header "
               "and all fields that are single values, with all digits")
      ->excludes(app.get_option("--json"))
      ->group(group);
  app.add_flag("--wide", o.wide,
               "all columns of the table, however narrow the terminal is")
      ->group(group);
  if (!rows) return;
  std::vector<std::string> names;
  for (const std::string& field : sortable())
    for (const char* order : {"", ":asc", ":desc"})
      names.push_back(field + order);
  auto* sort =
      app.add_option("--sort", o.sort,
                     "order the rows by a field of the records: lower, upper, "
                     "n, layer, head, sample, seconds, ...; numbers from the "
                     "largest to the smallest, words from A to Z; lower:asc "
                     "and lower:desc choose the direction")
          ->type_name("FIELD")
          ->excludes(app.get_option("--json"))
          ->group(group);
  only(sort, names);
  app.add_option("--top", o.top,
                 "show only K rows, those with the largest numbers unless "
                 "--sort says otherwise")
      ->transform(whole_number(1, Index{1} << 40))
      ->type_name("K")
      ->excludes(app.get_option("--json"))
      ->group(group);
}

Rows chosen_rows(Rows rows, const ViewOptions& o, const std::string& usual) {
  std::string field = o.sort;
  if (field.empty() && o.top > 0) field = usual;
  if (!field.empty()) {
    const std::size_t colon = field.find(':');
    const std::string order =
        colon == field.npos ? "" : field.substr(colon + 1);
    field = field.substr(0, colon);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const ordered_json& a, const ordered_json& b) {
                       const ordered_json x = value_of(a, field),
                                          y = value_of(b, field);
                       if (x.is_null() || y.is_null())
                         return !x.is_null() && y.is_null();
                       if (x.is_number() != y.is_number()) return x.is_number();
                       if (order == "asc") return x < y;
                       if (order == "desc") return y < x;
                       return x.is_number() ? y < x : x < y;
                     });
  }
  if (o.top > 0 && static_cast<Index>(rows.size()) > o.top)
    rows.resize(static_cast<std::size_t>(o.top));
  return rows;
}

bool masks_differ(const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row["mask"] != rows.front()["mask"];
  });
}

std::string common_mask(const Rows& rows) {
  return masks_differ(rows) ? "of each row" : cell(rows.front()["mask"]);
}

}  // namespace lipscope::cli
