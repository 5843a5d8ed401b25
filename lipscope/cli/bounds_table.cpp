#include "lipscope/cli/bounds_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "lipscope/report/table.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// what the table shows of a record, with the details beside the rest
ordered_json line_of(const ordered_json& record) {
  ordered_json line = record;
  for (const auto& [name, value] : record["details"].items())
    line[name] = value;
  line["mark"] = record["details"].value("best", false) ? "best" : "";
  if (record.contains("parameters"))
    line["t"] = record["parameters"].value("t", ordered_json(nullptr));
  return line;
}

std::string above(const std::vector<ordered_json>& lines, bool layers,
                  bool quiet) {
  constexpr std::size_t most_rows = 100;
  std::vector<ordered_json> shown;
  if (lines.size() <= most_rows)
    shown = lines;
  else
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(shown),
                 [](const ordered_json& l) { return l["mark"] == "best"; });
  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"scope", "scope"},
                                 {"radius_max", "|x| <="},
                                 {"upper", "upper"},
                                 {"upper_log10", "log10"},
                                 {"upper_by", "bound"},
                                 {"mark", ""},
                                 {"regime", "regime"}});
  std::string text = table(columns, shown);
  if (shown.size() < lines.size())
    text += fmt::format(
        "\nthe best of {} bounds; --out FILE.jsonl or --json has them all\n",
        lines.size());

  text += "\n";
  std::set<std::string> cited;
  for (const ordered_json& line : shown)
    if (cited.insert(line["upper_by"]).second)
      text += fmt::format("{:<22} {}\n", cell(line["upper_by"]),
                          cell(line["citation"]));
  if (!quiet)
    text +=
        "\nupper    no change of the input comes out more than this many times "
        "as large, for\n         any n tokens in the scope; proved, and "
        "rounded "
        "up ('-': beyond 1e308)\n"
        "regime   of the best one as n grows. sqrt-n: as the square root of n; "
        "saturated: slower,\n         since no token can have more than "
        "e^(2a)/n of the attention; mean-field: within\n         1% of the "
        "bound that does not depend on n (docs/bounds.md)\n";
  return text;
}

std::string witnesses(const std::vector<ordered_json>& lines, bool layers,
                      bool quiet) {
  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"t", "t"},
                                 {"radius_max", "max |x|"},
                                 {"lower", "lower"},
                                 {"lower_by", "found by"},
                                 {"witness_head", "witness head"}});
  std::string text =
      "not Lipschitz: there is no bound over all inputs. Measured at a family "
      "of inputs:\n\n" +
      table(columns, lines);
  if (!quiet)
    text +=
        "\nlower    the norm of the Jacobian at tokens t u, -t u, ... and one "
        "that they pull to both\n         sides alike, from below and in f64; "
        "it grows as t^2. --radius R bounds it\n";
  return text;
}

}  // namespace

std::string bounds_table(const std::vector<ordered_json>& records, bool quiet) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const bool layers = !first["layer"].is_null();
  std::vector<ordered_json> bounds, measured;
  for (const ordered_json& r : records)
    (r["lower"].is_null() ? bounds : measured).push_back(line_of(r));
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));
  if (!bounds.empty()) text += above(bounds, layers, quiet);
  if (!measured.empty()) text += witnesses(measured, layers, quiet);
  return text;
}

}  // namespace lipscope::cli
